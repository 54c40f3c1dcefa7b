import { startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { Demo, expectGoodResult, row } from './run-demo.js';

/** What the demo printed below the first heading that begins like this. */
function sectionOf(output: string, heading: string): string {
  const section = output.split(/^ *── /m).find((text) => text.startsWith(heading));
  return section?.slice(section.indexOf('\n')) ?? '';
}

describe('the demo of two processes', () => {
  let demo: Demo | undefined;
  afterEach(async () => {
    demo?.kill('SIGKILL');
    await until(() => demo?.running.length === 0);
  });

  it('oversells without the lock only, between two processes on the Redis of REDIS_URL, and leaves nothing there', async () => {
    const redis = await startRedis();
    demo = new Demo({ REDIS_URL: redis.url });
    const code = await demo.exitCode();
    expectGoodResult(demo.output);
    expect(code).toBe(0);
    expect(demo.output).toMatch(row('orders in work at once', 1, '\\d\\d'));
    expect(demo.output).toContain(`2 processes, shop-1 and shop-2, share the Redis`);
    expect(demo.output).toContain(`127.0.0.1:${redis.port}`);
    expect(demo.running).toEqual([]);
    expect(await redis.client().keys('{shop}*')).toEqual([]);
    await redis.stop();
  }, 90_000);

  it.each(['SIGINT', 'SIGKILL'] as const)(
    'leaves no process behind after %s',
    async (signal) => {
      demo = new Demo({});
      await until(() => demo?.output.includes('shop-1 and shop-2'), 60_000);
      expect(demo.output).toMatch(/2 processes, shop-1 and shop-2, share a Redis \S+ of the demo's own/);
      expect(demo.running.filter((command) => /redis-server|main\.ts/.test(command))).toHaveLength(3);
      demo.kill(signal);
      await until(() => demo?.running.length === 0);
    },
    90_000,
  );

  it('tells what each tool says about a process that is stuck in a lock, and leaves nothing in Redis', async () => {
    const redis = await startRedis();
    demo = new Demo({ REDIS_URL: redis.url }, '--stuck', '--after', '5', '--all');
    const code = await demo.exitCode();
    const { output } = demo;
    const under = (heading: string) => sectionOf(output, heading);
    const holder = /shop-1 on \S+, pid \d+/;
    expect(under('await locks.inspect')).toMatch(/application: 'shop-1'.*method: 'OrdersService\.order'.*waiting: 1/s);
    expect(under('npx nestjs-redis-lock inspect')).toMatch(
      new RegExp(`held by +${holder.source}, in OrdersService\\.order, for .*waiting +1`, 's'),
    );
    expect(under('npx nestjs-redis-lock ls')).toMatch(
      new RegExp(`sku:lamp-\\w+ +exclusive +${holder.source} +OrdersService\\.order `),
    );
    expect(under('npx nestjs-redis-lock clients')).toMatch(/shop-2 .*shop-1 /s);
    expect(under('GET /metrics of shop-1')).toMatch(/^ *distributed_lock_held\{group="sku:#<args\[0\]>".*\} 1$/m);
    expect(under('GET /metrics of shop-2')).toMatch(/^ *distributed_lock_waiting\{group="sku:#<args\[0\]>".*\} 1$/m);
    const board = JSON.parse(under('GET http://'));
    expect(board.locks.rows).toMatchObject([
      {
        owners: [{ application: 'shop-1', method: 'OrdersService.order' }],
        waiters: [{ application: 'shop-2', method: 'StockService.deliver' }],
      },
    ]);
    expect(under('npx nestjs-redis-lock release')).toMatch(/Released by force at .*: the payment provider is down/);
    expect(under('shop-2 goes on')).toMatch(/delivered: 201 .*"quantity":50/);
    expect(under('a span of shop-1')).toMatch(/name: 'lock hold sku:.*outcome': 'lost'/s);
    expect(under('a span of shop-2')).toMatch(/name: 'lock acquire sku:.*outcome': 'acquired'/s);
    expect(code).toBe(0);
    expect(demo.running).toEqual([]);
    expect(await redis.client().keys('{shop}*')).toEqual([]);
    await redis.stop();
  }, 90_000);

  it('says at once what is stuck, then how far it is, and in the end only what matters', async () => {
    const redis = await startRedis();
    demo = new Demo({ REDIS_URL: redis.url }, '--stuck', '--after', '12');
    await until(() => /holds the lock 'sku:lamp-\w+': the payment provider does not answer/.test(demo?.output ?? ''));
    expect(demo.output).not.toContain('npx nestjs-redis-lock');
    expect(await demo.exitCode()).toBe(0);
    expect(demo.output).toContain('… 10 of 12 s');
    expect(demo.output).toMatch(
      /sku:lamp-\w+ +exclusive +shop-1 .*Released by force .*delivered: 201 .*LockLostError|was lost/s,
    );
    expect(demo.output.trimEnd().split('\n').length).toBeLessThan(65);
    await redis.stop();
  }, 90_000);
});
