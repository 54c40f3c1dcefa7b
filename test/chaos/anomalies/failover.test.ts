import { LockUnavailableError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { errorOf } from '../../support/section.js';
import { type RedisSentinel, startSentinel } from '../../support/servers/redis-sentinel.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

/** The master is killed before its replicas know of a lock, because they are cut off while it is granted. */
describe('a failover to a replica that does not know a lock', () => {
  let sentinel: RedisSentinel;
  let replicas: RedisServer[];
  beforeEach(async () => {
    sentinel = await startSentinel();
    replicas = await sentinel.replicas();
  }, 60_000);
  afterEach(() => sentinel.stop());

  const open = (minReplicas: number, connection: RedisLockOptions['connection'] = sentinel.options) =>
    createLockService({
      connection,
      shutdownTimeout: 100,
      minReplicas,
      commandTimeout: 2_000,
      logger: { warn: () => {}, error: () => {} },
    });

  it('gives it a second owner', async () => {
    // This client does not know the Sentinels, so it does not notice the failover, and relies on its lease of a minute.
    const one = open(0, (await sentinel.master()).url);
    const other = open(0);
    await (await one.acquire('another')).release(); // now it is connected
    await cutOff();
    const first = await one.acquire('stock', { leaseTime: '1m' });
    await failOver();
    const second = await other.acquire('stock', { leaseTime: '1m', waitTime: '20s' });
    expect([first.held, second.held]).toEqual([true, true]);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    await Promise.all([one.close(), other.close()]);
  });

  it('does not with minReplicas: the first caller was refused, or a replica knows', async () => {
    const [one, other] = [open(1), open(1)];
    await (await one.acquire('another')).release();
    await cutOff();
    const refused = await errorOf(one.acquire('stock', { leaseTime: '1m', waitTime: 0 }));
    expect(refused).toBeInstanceOf(LockUnavailableError);
    for (const replica of replicas) replica.resume();
    const first = await one.acquire('stock', { leaseTime: '1m', waitTime: '20s' });
    await sentinel.killMaster();
    expect(await other.tryAcquire('stock', { waitTime: '5s' })).toBeNull();
    expect(first.held).toBe(true);
    await first.release();
    const second = await other.acquire('stock', { waitTime: '20s' });
    expect([first.held, second.held]).toEqual([false, true]);
    await Promise.all([one.close(), other.close()]);
  });

  /** From now on, nothing that the master executes reaches its replicas, until they are resumed. */
  async function cutOff(): Promise<void> {
    for (const replica of replicas) replica.pause();
    const master = await sentinel.master();
    await master.client().call('CLIENT', 'KILL', 'TYPE', 'replica');
  }

  async function failOver(): Promise<void> {
    const old = await sentinel.master();
    await old.kill();
    for (const replica of replicas) replica.resume();
    await until(async () => (await sentinel.master()) !== old, 30_000);
  }
});
