import { setTimeout as sleep } from 'node:timers/promises';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { Section } from '../../support/section.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { type RedisSentinel, startSentinel } from '../../support/servers/redis-sentinel.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

const LEASE = 30_000;
const REFRESH = 5_000;
/**
 * What a message costs that is not heard: the process asks when it is connected again, or refreshes its place. It is well
 * below the lease, until whose end a caller sleeps that hears nothing.
 */
const BOUND = 1_000 + REFRESH;

const name = '{slot}:order';
const key = `lock:${name}`;
const places = `nestjs_redis_lock_turns:${key}`;

/** Services of which the first holds a lock, and the others wait in its line. */
class Line {
  readonly services: readonly LockService[];
  private readonly section = new Section();
  private readonly waits: Promise<number>[] = [];
  private release: () => void = () => {};

  constructor(options: RedisLockOptions) {
    this.services = Array.from({ length: 5 }, () =>
      createLockService({
        ...options,
        watchdogTimeout: LEASE,
        waiterTimeout: 3 * REFRESH,
        commandTimeout: 1_000,
        waitTime: Infinity,
        outageTimeout: Infinity,
        shutdownTimeout: 100,
        logger: { warn: () => {}, error: () => {} },
      }),
    );
  }

  /** @param count returns how many places the line has */
  async form(count: () => Promise<number>): Promise<void> {
    const [first, ...others] = this.services;
    const opened = new Promise<void>((resolve) => {
      this.release = resolve;
    });
    const isHeld = new Promise<void>((held) => {
      this.enter(first, () => {
        held();
        return opened;
      });
    });
    await isHeld;
    for (const [n, locks] of others.entries()) {
      // More callers of a process have no places of their own.
      for (let caller = 0; caller < 3; caller++) this.enter(locks, () => sleep(1));
      await until(async () => (await count()) === n + 1);
    }
  }

  private enter(locks: LockService, body: () => Promise<void>): void {
    const wait = locks.withLock(name, async () => {
      const at = performance.now();
      await this.section.pass();
      await body();
      return at;
    });
    this.waits.push(wait);
  }

  /** Releases the lock. Returns after how many milliseconds the last of those who waited was served. */
  async serve(): Promise<number> {
    const released = performance.now();
    this.release();
    return Math.max(...(await Promise.all(this.waits))) - released;
  }

  /** Callers that wait behind each other again, once the line has done its work. */
  async isAlive(count: () => Promise<number>): Promise<void> {
    this.waits.length = 0;
    await this.form(count);
    expect(await this.serve()).toBeLessThan(BOUND);
    expect(this.section.most).toBe(1);
    await until(async () => (await count()) === 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.services.map((locks) => locks.close()));
  }
}

/** How many places the line has on the servers that have a part of it. */
async function countOn(server: RedisServer): Promise<number> {
  const client = server.client();
  try {
    return await client.zcard(places);
  } finally {
    client.disconnect();
  }
}

describe('processes that wait in the line of a lock when Sentinel replaces the master', () => {
  let sentinel: RedisSentinel;
  let line: Line;

  beforeEach(async () => {
    sentinel = await startSentinel();
    line = new Line({ connection: sentinel.options });
  }, 60_000);
  afterEach(async () => {
    await line.close();
    await sentinel.stop();
  });

  const count = async () => countOn(await sentinel.master());

  it.each([
    ['that was killed', () => sentinel.killMaster()],
    ['in an orderly way', () => sentinel.failover()],
  ])(
    '%s are served in time, and the line works on',
    async (_, replace) => {
      await line.form(count);
      const old = await sentinel.master();
      await replace();
      // Until Sentinel turns it into a replica, the old master continues to answer connected clients.
      if (old.running) await until(() => isReplica(old), 30_000);
      expect(await line.serve()).toBeLessThan(BOUND);
      await line.isAlive(count);
    },
    90_000,
  );
});

async function isReplica(server: RedisServer): Promise<boolean> {
  const client = server.client();
  try {
    const [role] = (await client.call('ROLE')) as unknown[];
    return role === 'slave';
  } finally {
    client.disconnect();
  }
}

describe.each(['auto', 'off'] as const)(
  'processes that wait in the line of a lock in a cluster with sharded pub/sub: %s,',
  (shardedPubSub) => {
    let cluster: RedisCluster;
    let slot: number;
    let line: Line;

    beforeAll(async () => {
      cluster = await startCluster();
      slot = await cluster.slotOf(key);
    }, 60_000);
    beforeEach(() => {
      line = new Line({ connection: { nodes: cluster.nodes }, shardedPubSub });
    });
    afterEach(() => line.close());
    afterAll(() => cluster?.stop(), 60_000);

    const count = async () => countOn(await cluster.masterOf(slot));

    it('are served after its slot has moved', async () => {
      await line.form(count);
      await cluster.moveSlot(slot);
      expect(await line.serve()).toBeLessThan(BOUND);
      await line.isAlive(count);
    }, 90_000);

    it.each([
      ['none of its keys', []],
      ['the lock', [key]],
      ['its places', [places, `nestjs_redis_lock_turns_until:${key}`]],
    ])(
      'are served soon after a move during which it was released, when %s had moved',
      async (_, keys) => {
        await line.form(count);
        const move = await cluster.beginMove(slot);
        if (keys.length > 0) await move.migrate(...keys);
        const served = line.serve();
        await sleep(500);
        const before = performance.now();
        await move.finish();
        const moving = performance.now() - before;
        expect(await served).toBeLessThan(500 + moving + BOUND);
        await line.isAlive(count);
      },
      90_000,
    );

    it('are served after a regular failover of its master', async () => {
      await line.form(count);
      await cluster.failover(slot);
      expect(await line.serve()).toBeLessThan(BOUND);
      await line.isAlive(count);
    }, 90_000);

    it('are served after its master was killed', async () => {
      await line.form(count);
      await cluster.killMaster(slot);
      expect(await line.serve()).toBeLessThan(BOUND);
      await line.isAlive(count);
    }, 90_000);
  },
);
