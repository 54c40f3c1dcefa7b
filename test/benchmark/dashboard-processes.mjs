// The processes of the benchmarks of the dashboard.
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Holds `held` locks while `waiters` callers wait, and reports when it is ready. */
export async function load(library, held, waiters) {
  const { createLockService } = await import(new URL('core.js', library).href);
  const logger = { warn() {}, error() {} };
  const open = (applicationName) => createLockService({ connection: process.env.REDIS, applicationName, logger });
  const [holder, waiter] = [open('holder'), open('waiter')];
  for (let n = 0; n < held; n += 500)
    await Promise.all(
      Array.from({ length: Math.min(500, held - n) }, (_, i) =>
        holder.acquire(`order:${n + i}`, { group: 'OrdersService.pay' }),
      ),
    );
  for (let n = 0; n < waiters; n++)
    void waiter.acquire(`order:${n % 20}`, { group: 'OrdersService.pay' }).catch(() => {});
  await sleep(3_000);
  process.send('ready');
}

/** A NestJS application with the dashboard. Returns its URL. */
export async function serve(library) {
  await import('reflect-metadata');
  const { Module } = await import('@nestjs/common');
  const { NestFactory } = await import('@nestjs/core');
  const { RedisLockModule } = await import(new URL('index.js', library).href);
  const { RedisLockDashboardModule } = await import(new URL('dashboard.js', library).href);
  class App {}
  Module({
    imports: [
      RedisLockModule.forRoot({ connection: process.env.REDIS, applicationName: 'board' }),
      RedisLockDashboardModule.forRoot({ path: 'locks', public: true }),
    ],
  })(App);
  const app = await NestFactory.create(App, { logger: false });
  await app.listen(0, '127.0.0.1');
  return app.getUrl();
}

export function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(String(port)));
    });
  });
}
