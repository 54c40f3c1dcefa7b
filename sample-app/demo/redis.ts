import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { Redis } from 'ioredis';
import { Child } from './children.js';

const ATTEMPTS = 5;

export interface SharedRedis {
  readonly url: string;
  /** What the demo prints: without a password. */
  readonly description: string;
}

/** The Redis of REDIS_URL; without one, a Redis of the demo's own, if redis-server is on the PATH. */
export async function sharedRedis(): Promise<SharedRedis | undefined> {
  const url = process.env.REDIS_URL;
  if (!url) return privateRedis();
  const { version, place } = await identify(url);
  return { url, description: `the Redis ${version} of REDIS_URL (${place})` };
}

/** A Redis without persistence, on a free port of the loopback interface. */
async function privateRedis(): Promise<SharedRedis | undefined> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    try {
      const server = await startServer(port);
      if (server === undefined) return undefined;
      await server.ready(/Ready to accept connections/);
    } catch (error) {
      if (attempt < ATTEMPTS && /in use|Failed listening/.test(String(error))) continue;
      throw error;
    }
    const url = `redis://127.0.0.1:${port}`;
    return { url, description: `a Redis ${(await identify(url)).version} of the demo's own (port ${port})` };
  }
}

async function startServer(port: number): Promise<Child | undefined> {
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  // Otherwise, Redis would load a dump.rdb that happens to be there.
  settings.push('--dir', tmpdir(), '--dbfilename', 'nestjs-redis-lock-demo.rdb');
  try {
    return await Child.start('redis-server', 'redis-server', settings, process.env);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve((address as { port: number }).port));
    });
  });
}

async function identify(url: string): Promise<{ version: string; place: string }> {
  const client = new Redis(url, { lazyConnect: true, connectTimeout: 3_000, retryStrategy: () => null });
  const { host, port, db } = client.options;
  const place = `${host}:${port}/${db ?? 0}`;
  let refusal: string | undefined; // says more than the rejection, which only says that the connection was closed
  client.on('error', ({ message }) => {
    refusal = message;
  });
  try {
    await client.connect();
    const [, version = ''] = (await client.info('server')).match(/redis_version:(\S+)/) ?? [];
    return { version, place };
  } catch (error) {
    throw new Error(`The Redis at ${place} cannot be used: ${refusal || (error as Error).message}`);
  } finally {
    client.disconnect();
  }
}
