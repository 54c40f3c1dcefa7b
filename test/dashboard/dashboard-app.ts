import { request } from 'node:http';
import { Readable } from 'node:stream';
import { type CanActivate, type INestApplication, Module, UnauthorizedException } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { RedisLockDashboardModule, type RedisLockDashboardOptions } from '../../lib/dashboard.js';
import {
  LockService,
  MemoryBackend,
  MemoryStore,
  nodeRuntime,
  RedisLockModule,
  type RedisLockOptions,
} from '../../lib/index.js';

export type Platform = 'Express' | 'Fastify';
export type AnyPlatform = Platform | 'HTTP/2';

export interface DashboardAppOptions {
  /** `HTTP/2` is Fastify's, without TLS. */
  readonly platform?: AnyPlatform;
  readonly prefix?: string;
  readonly locks?: RedisLockOptions;
  readonly dashboard?: Partial<RedisLockDashboardOptions>;
  readonly setUp?: (app: INestApplication) => void;
}

/** The locks are in the memory of this application. */
function inMemory(): RedisLockOptions {
  return { backend: new MemoryBackend({ runtime: nodeRuntime, store: new MemoryStore() }) };
}

/** Allows requests that have the header `x-pass: let me in`. */
export class PassGuard implements CanActivate {
  canActivate(context: { switchToHttp(): { getRequest(): { headers: Record<string, string> } } }): boolean {
    if (context.switchToHttp().getRequest().headers['x-pass'] === 'let me in') return true;
    throw new UnauthorizedException();
  }
}

/** An application with a dashboard at `/admin/locks`, on a free loopback port. */
export async function openDashboard(options: DashboardAppOptions = {}): Promise<DashboardApp> {
  const { platform = 'Express', prefix, locks = {}, dashboard, setUp } = options;
  @Module({
    imports: [
      RedisLockModule.forRoot({
        ...(locks.connection === undefined && locks.quorum === undefined ? inMemory() : {}),
        shutdownTimeout: 100,
        ...locks,
      }),
      RedisLockDashboardModule.forRoot({ path: 'admin/locks', public: true, ...dashboard }),
    ],
  })
  class App {}
  const module = await Test.createTestingModule({ imports: [App] }).compile();
  const logger = new LogLines();
  const adapter = platform === 'HTTP/2' ? new FastifyAdapter({ http2: true }) : new FastifyAdapter();
  const app =
    platform === 'Express'
      ? module.createNestApplication({ logger })
      : module.createNestApplication(adapter as FastifyAdapter, { logger });
  if (prefix !== undefined) app.setGlobalPrefix(prefix);
  setUp?.(app);
  await app.listen(0, '127.0.0.1');
  return new DashboardApp(app, `${await app.getUrl()}/${prefix ? `${prefix}/` : ''}admin/locks`, logger);
}

class LogLines {
  readonly lines: string[] = [];
  readonly log = () => {};
  readonly warn = (message: string) => void this.lines.push(message);
  readonly error = (message: string) => void this.lines.push(message);
}

export class DashboardApp {
  constructor(
    readonly app: INestApplication,
    /** The address of the page. */
    readonly url: string,
    readonly logger: LogLines,
  ) {}

  get locks(): LockService {
    return this.app.get(LockService);
  }

  get(path = '', headers: Record<string, string> = {}): Promise<Response> {
    return ask(this.url + path, { headers });
  }

  // biome-ignore lint/suspicious/noExplicitAny: what a page is sent
  async board(query = ''): Promise<any> {
    return (await this.get(`/api/board${query}`)).json();
  }

  async release(
    name: string,
    body: unknown,
    headers: Record<string, string> = { 'x-redis-lock-dashboard': 'release' },
  ): Promise<{ status: number; message: string | undefined }> {
    const response = await ask(`${this.url}/api/locks/${encodeURIComponent(name)}/release`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as { message?: string };
    return { status: response.status, message: answer.message };
  }

  close(): Promise<void> {
    return this.app.close();
  }
}

interface Init {
  readonly method?: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
}

/** As `fetch`, which never sends the header `Host` that it is given. */
function ask(url: string, init: Init): Promise<Response> {
  if (init.headers.host === undefined) return fetch(url, init);
  const { body, ...options } = init;
  return new Promise((resolve, reject) => {
    const answer = request(url, options, (response) => {
      const { statusCode: status } = response;
      resolve(new Response(Readable.toWeb(response) as ReadableStream, { status }));
    });
    answer.on('error', reject).end(body);
  });
}
