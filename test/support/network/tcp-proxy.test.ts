import { Redis } from 'ioredis';
import { type RedisServer, startRedis } from '../servers/redis-server.js';
import { until } from '../until.js';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.js';

describe('startTcpProxy', () => {
  let redis: RedisServer;
  let proxy: TcpProxy;
  let client: Redis;
  const settled = (promise: Promise<unknown>, ms: number) =>
    Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setTimeout(resolve, ms, false))]);

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  beforeEach(async () => {
    proxy = await startTcpProxy(redis.port);
    client = new Redis(proxy.url, { maxRetriesPerRequest: null, retryStrategy: () => 20, disconnectTimeout: 100 });
    client.on('error', () => {});
    await client.set('key', '0');
  });
  afterEach(async () => {
    client.disconnect();
    await proxy.stop();
  });

  it('is transparent at first', async () => {
    expect(await client.incr('key')).toBe(1);
    expect([proxy.accepted, proxy.open]).toEqual([1, 1]);
  });

  it('delays both directions and keeps the order when the delay shrinks', async () => {
    proxy.delay(150);
    const { requests } = proxy;
    const start = performance.now();
    const first = client.incr('key');
    await until(() => proxy.requests > requests);
    proxy.delay(10);
    const second = client.incr('key');
    expect(await Promise.all([first, second])).toEqual([1, 2]);
    expect(performance.now() - start).toBeGreaterThan(145);
  });

  it('leaves connections half open, the old ones for good', async () => {
    proxy.cutHalfOpen();
    const lost = client.incr('key');
    lost.catch(() => {});
    expect(await settled(lost, 100)).toBe(false);
    expect(client.status).toBe('ready');
    await proxy.heal();
    expect(await settled(lost, 50)).toBe(false);
    expect(await redis.client().get('key')).toBe('0');
    const fresh = client.duplicate();
    expect(await fresh.get('key')).toBe('0');
    fresh.disconnect();
  });

  it('leaves only those connections half open that have carried a certain request', async () => {
    const other = client.duplicate();
    await other.echo('marked');
    proxy.cutHalfOpenAfter(/marked/);
    expect(await settled(other.incr('key'), 100)).toBe(false);
    expect(await client.incr('key')).toBe(1);
    other.disconnect();
  });

  it('executes a command and swallows its reply', async () => {
    proxy.dropReplies({ after: /incr/i });
    expect(await client.get('key')).toBe('0');
    const lost = client.incr('key');
    await until(() => proxy.droppedReplies === 1);
    expect(await redis.client().get('key')).toBe('1');
    await proxy.heal(); // closes the connection, and ioredis sends the command again
    expect(await lost).toBe(2);
  });

  it('breaks the connection on the first lost reply when told to', async () => {
    proxy.dropReplies({ after: /incr/i, close: true });
    const resent = client.incr('key');
    await until(() => proxy.droppedReplies === 2);
    await proxy.heal();
    expect(await resent).toBeGreaterThanOrEqual(3);
  });

  it('holds requests up, and delivers them in their order though their client has hung up', async () => {
    proxy.holdUp({ requests: () => 60_000 });
    for (const value of ['1', '2', '3']) void client.append('key', value).catch(() => {});
    await until(() => proxy.holding === 1);
    client.disconnect();
    await until(() => client.status === 'end');
    const direct = redis.client();
    expect(await direct.get('key')).toBe('0');
    proxy.letThrough();
    await until(async () => (await direct.get('key')) === '0123');
    await until(() => proxy.open === 0);
  });

  it('holds replies up, each connection alone', async () => {
    proxy.holdUp({ replies: () => 60_000 });
    const late = client.incr('key');
    const direct = redis.client();
    await until(async () => (await direct.get('key')) === '1');
    proxy.holdUp();
    expect(await settled(late, 50)).toBe(false);
    const other = client.duplicate();
    expect(await other.incr('key')).toBe(2);
    other.disconnect();
    proxy.letThrough();
    expect(await late).toBe(1);
  });

  it('refuses connections until it is healed', async () => {
    await proxy.refuse();
    await until(() => client.status !== 'ready');
    const late = client.incr('key');
    expect(await settled(late, 100)).toBe(false);
    await proxy.heal();
    expect(await late).toBe(1);
  });

  it('breaks what is open on disconnect, and lets clients come back', async () => {
    proxy.disconnect();
    expect(await client.incr('key')).toBe(1);
    expect(proxy.accepted).toBe(2);
  });
});
