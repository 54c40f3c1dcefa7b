import type { Redis } from 'ioredis';
import { LockError, LockLostError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { errorOf, Section } from '../../support/section.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { NEVER, woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';
import { connectQuorum, startNodes } from './redis-nodes.js';

/** What becomes of locks on a quorum of this many servers while some of them are away. */
export function describeOutages(count: number): void {
  describe(`Redlock over ${count} servers`, () => {
    const minority = (count - 1) / 2;
    let servers: RedisServer[];
    let clients: Redis[];
    let services: LockService[];
    let name: string;
    let tests = 0;

    beforeAll(async () => {
      servers = await startNodes(count);
      clients = servers.map((server) => server.client());
    });
    beforeEach(() => {
      services = [];
      name = `order:${++tests}`;
    });
    afterEach(async () => {
      for (const server of servers) {
        if (!server.running) await server.start();
        server.resume();
      }
      await Promise.all(services.map((service) => service.close()));
      await Promise.all(clients.map((client) => client.flushall()));
    });
    afterAll(() => Promise.all(servers.map((server) => server.stop())));

    /** For a lock that is lost. By default, a lease lasts while this machine is busy. */
    const BRIEF = { watchdogTimeout: 1_200 };

    /** For a lock that is renewed for longer than its first lease. A busy machine may miss two renewals. */
    const PATIENT = { watchdogTimeout: 15_000 };

    /** Milliseconds within which even a busy machine answers. Tests wait for that long for servers that are paused. */
    const NODE_TIMEOUT = 2_000;

    /** A separate process, which renews three times in a lease. */
    function open(
      options: { watchdogTimeout?: number; nodeTimeout?: number; commandTimeout?: number } = {},
    ): LockService {
      const { watchdogTimeout = 9_000, nodeTimeout = NODE_TIMEOUT, commandTimeout } = options;
      const { backend, id: clientId } = connectQuorum(servers, { nodeTimeout, commandTimeout });
      const service = new LockService(
        new LockEngine({
          ...ENGINE_DEFAULTS,
          backend,
          clientId,
          runtime: nodeRuntime,
          logger: new RecordingLogger(),
          watchdogTimeout: ms(watchdogTimeout),
          waiterTimeout: ms(5_000),
          shutdownTimeout: ms(100),
          onLost: 'throw',
        }),
      );
      services.push(service);
      return service;
    }

    /** The owners of the lock on this server. */
    const ownersOn = (node: number) => clients[node].hkeys(`lock:${name}`);

    /** Settles when this many renewals have begun and ended from now on. */
    async function renewed(service: LockService, times: number): Promise<void> {
      let renewals = 0;
      const off = service.on('renewed', () => renewals++);
      await until(() => renewals >= times);
      off();
    }

    const kill = (nodes: readonly number[]) => Promise.all(nodes.map((node) => servers[node].kill()));
    const some = Array.from({ length: minority }, (_, node) => node);
    const most = Array.from({ length: minority + 1 }, (_, node) => node);

    it('keeps the lock when a minority of the servers is killed while it is held', async () => {
      const [one, other] = [open(PATIENT), open()];
      const lease = await one.acquire(name);
      await kill(some);
      await renewed(one, 3);
      expect(lease.held).toBe(true);
      expect(await other.tryAcquire(name)).toBeNull();
      await lease.release();
      await other.withLock(name, () => {});
    });

    it('keeps the lock when a minority of the servers hangs while it is held', async () => {
      const [one, other] = [open(PATIENT), open()];
      const lease = await one.acquire(name);
      for (const node of some) servers[node].pause();
      await renewed(one, 3);
      expect(lease.held).toBe(true);
      expect(await other.tryAcquire(name)).toBeNull();
      await lease.release();
      await other.withLock(name, () => {});
    });

    it('acquires and releases locks without waiting for a minority that hangs', async () => {
      const service = open({ nodeTimeout: NEVER, commandTimeout: NEVER });
      await service.withLock(name, () => {});
      for (const node of some) servers[node].pause();
      await service.withLock(name, (lease) => lease.extend('10s'));
      expect(await service.isLocked(name)).toBe(false);
      for (const node of some) servers[node].resume();
    });

    it('wakes a waiter of another process even though a minority of the servers is down', async () => {
      const [one, other] = [open({ watchdogTimeout: NEVER }), open({ watchdogTimeout: NEVER })];
      await kill(some);
      const lease = await one.acquire(name);
      const waiting = other.acquire(name);
      await until(
        async () => (await clients[count - 1].pubsub('NUMSUB', `redisson_lock__channel:{lock:${name}}`))[1] === 1,
      );
      await lease.release();
      await (await woken(waiting)).release();
    });

    it('loses the lock when a majority is down for longer than the lease, and works again after the restart', async () => {
      const service = open(BRIEF);
      const lease = await service.acquire(name);
      await kill(most);
      await until(() => lease.signal.aborted);
      expect(lease.signal.reason).toBeInstanceOf(LockLostError);
      expect(await errorOf(service.acquire(name, { waitTime: 300 }))).toBeInstanceOf(LockUnavailableError);
      await expect(lease.release()).rejects.toThrow(LockLostError);
      const waiting = service.acquire(name, { outageTimeout: '1m' });
      for (const node of most) await servers[node].start();
      await (await waiting).release();
    });

    it('does not lose the lock while a majority is away for less than the lease', async () => {
      const service = open();
      const lease = await service.acquire(name);
      for (const node of most) servers[node].pause();
      expect(await errorOf(lease.extend('10s'))).toBeInstanceOf(LockUnavailableError);
      for (const node of most) servers[node].resume();
      await until(() =>
        lease.extend('10s').then(
          () => true,
          () => false,
        ),
      );
      expect(lease.held).toBe(true);
      await lease.release();
    });

    it('restores the lock on servers that lost their data, one after the other', async () => {
      const [one, other] = [open(PATIENT), open()];
      const lease = await one.acquire(name);
      for (let node = 0; node < count; node++) {
        await servers[node].restart();
        await until(async () => {
          lease.assertHeld();
          return (await ownersOn(node)).includes(lease.owner);
        });
      }
      expect(await other.tryAcquire(name)).toBeNull();
      await lease.release();
      for (let node = 0; node < count; node++) await until(async () => (await ownersOn(node)).length === 0);
    });

    it('notices that the lock is lost when a majority of the servers lost its data', async () => {
      const service = open(BRIEF);
      const lease = await service.acquire(name);
      // A late grant, or a renewal between two of them, would give the lock back to a server that was emptied just
      // before.
      await until(async () => {
        await Promise.all(most.map((node) => clients[node].flushall()));
        return lease.signal.aborted;
      });
      expect(lease.signal.reason.message).toMatch(/no longer existed/);
      await expect(lease.release()).rejects.toThrow(LockLostError);
    });

    it('refuses a caller that reaches only a minority, and leaves nothing there', async () => {
      const service = open({ watchdogTimeout: NEVER });
      await kill(most);
      expect(await errorOf(service.tryAcquire(name))).toBeInstanceOf(LockUnavailableError);
      for (let node = most.length; node < count; node++) await until(async () => (await ownersOn(node)).length === 0);
    });

    it('refuses a caller that finds a majority busy, and leaves nothing on the others', async () => {
      const service = open({ watchdogTimeout: NEVER, nodeTimeout: NEVER, commandTimeout: NEVER });
      await Promise.all(most.map((node) => clients[node].hset(`lock:${name}`, 'somebody:1', 1)));
      expect(await service.tryAcquire(name)).toBeNull();
      for (let node = most.length; node < count; node++) await until(async () => (await ownersOn(node)).length === 0);
      for (const node of most) expect(await ownersOn(node)).toEqual(['somebody:1']);
    });

    it('revokes what servers granted whose answers came too late', async () => {
      const service = open({ watchdogTimeout: NEVER });
      await service.withLock('other', () => {}); // opens all connections
      for (const node of most) servers[node].pause();
      expect(await errorOf(service.tryAcquire(name))).toBeInstanceOf(LockUnavailableError);
      for (const node of most) servers[node].resume();
      for (let node = 0; node < count; node++) await until(async () => (await ownersOn(node)).length === 0);
      await service.withLock(name, () => {});
    });

    it('does not revoke a later attempt of the same caller with an earlier one', async () => {
      let service!: LockService;
      let failures = 0;
      // Outages are reported every 10 s at most, and the first connections may take longer than NODE_TIMEOUT.
      await until(async () => {
        failures = 0;
        service = open({ watchdogTimeout: NEVER });
        service.on('error', () => failures++);
        await service.withLock('other', () => {});
        return failures === 0;
      });
      for (const node of most) servers[node].pause();
      const waiting = service.acquire(name);
      await until(() => failures > 0);
      for (const node of most) servers[node].resume();
      const lease = await waiting;
      for (let round = 0; round < 5; round++) await lease.extend(NEVER);
      expect((await service.inspect(name)).owners).toMatchObject([{ owner: lease.owner }]);
      await lease.release();
      for (let node = 0; node < count; node++) await until(async () => (await ownersOn(node)).length === 0);
    });

    it('serves callers of several processes one at a time, each once, and leaves nothing', async () => {
      const section = new Section();
      const processes = [open(), open(), open(), open()];
      const tokens: number[] = [];
      await Promise.all(
        processes.flatMap((service, n) =>
          Array.from({ length: 10 }, (_, caller) =>
            service.withLock(name, async (lease) => {
              tokens.push(lease.fencingToken);
              await section.pass(`${n}.${caller}`, 1);
            }),
          ),
        ),
      );
      expect(section.most).toBe(1);
      expect(new Set(section.entries).size).toBe(40);
      expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
      expect(new Set(tokens).size).toBe(40);
      for (const client of clients) await until(async () => (await client.keys('*lock:*')).length === 0);
    });

    it.each(['reentrant', 'fenced'] as const)(
      'gives growing tokens of a %s lock, also when the majority changes',
      async (type) => {
        const [one, other] = [open(), open()];
        const tokens: number[] = [];
        const take = async (service: LockService) => {
          const lease: Lease = await service.acquire(name, { type });
          tokens.push(lease.fencingToken);
          await lease.release();
        };
        await take(one);
        // The clock of one server is ahead, and then that server is gone.
        const clock = type === 'fenced' ? `redisson_lock_token:{lock:${name}}` : 'nestjs_redis_lock_clock';
        await clients[0].set(clock, String(Date.now() * 1_000 + 3_600_000_000));
        for (let node = 1; node <= minority; node++) servers[node].pause();
        await take(one);
        for (let node = 1; node <= minority; node++) servers[node].resume();
        await servers[0].kill();
        await take(other);
        await take(one);
        expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
        expect(new Set(tokens).size).toBe(4);
      },
    );

    it('refuses fair locks with a reason', async () => {
      const error = await errorOf(open().acquire(name, { type: 'fair' }));
      expect(error).toBeInstanceOf(LockError);
      expect(error.message).toMatch(/a quorum has no fair locks/);
    });
  });
}
