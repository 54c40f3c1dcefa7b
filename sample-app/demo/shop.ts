import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Child } from './children.js';
import { type SharedRedis, sharedRedis } from './redis.js';

/** How often the report is due, in milliseconds: the demo does not wait for the night. */
export const REPORT_PERIOD = 2_000;

/** Longer than any request of the shop waits for a lock, in milliseconds. */
const REQUEST_TIMEOUT = 15_000;

/** An answer of a replica, and how long it took in milliseconds. */
export interface Answer<T> {
  readonly status: number;
  readonly body: T;
  readonly took: number;
}

/** A process of the shop, as its customers see it. */
export class Replica {
  constructor(
    readonly name: string,
    readonly url: string,
    readonly program: Child,
  ) {}

  async ask<T>(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: object,
    signal = AbortSignal.timeout(REQUEST_TIMEOUT),
  ): Promise<Answer<T>> {
    const start = performance.now();
    const response = await fetch(this.url + path, {
      method,
      headers: { 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
      signal,
    });
    const text = await response.text();
    return { status: response.status, body: text && JSON.parse(text), took: performance.now() - start };
  }
}

export interface Shop {
  readonly redis: SharedRedis | undefined;
  readonly replicas: readonly Replica[];
}

/**
 * Two processes when they can share a Redis, otherwise one.
 *
 * @param env settings of the processes
 * @param imports URLs of modules that they load first
 */
export async function openShop(env: NodeJS.ProcessEnv = {}, imports: readonly string[] = []): Promise<Shop> {
  const redis = await sharedRedis();
  const names = redis ? ['shop-1', 'shop-2'] : ['shop-1'];
  const replicas = await Promise.all(names.map((name) => startReplica(name, redis?.url, env, imports)));
  return { redis, replicas };
}

async function startReplica(
  name: string,
  redisUrl = '',
  env: NodeJS.ProcessEnv,
  imports: readonly string[],
): Promise<Replica> {
  // .js, or .ts when the sources run without a build
  const main = fileURLToPath(new URL(`../main${extname(import.meta.url)}`, import.meta.url));
  const first = imports.flatMap((url) => ['--import', url]);
  const program = await Child.start(name, process.execPath, [...process.execArgv, ...first, main], {
    ...process.env,
    PORT: '0',
    HOST: '127.0.0.1',
    NO_COLOR: '1',
    SHOP_NAME: name,
    REDIS_URL: redisUrl,
    REPORT_CRON: `*/${REPORT_PERIOD / 1000} * * * * *`,
    ...env,
  });
  const [, url] = await program.ready(/listens on (http:\S+)/);
  return new Replica(name, url!, program);
}

/** Sends `count` requests at once, to each replica in turn. */
export function atOnce<T>(
  replicas: readonly Replica[],
  count: number,
  request: (replica: Replica, i: number) => Promise<T>,
): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => request(replicas[i % replicas.length]!, i)));
}
