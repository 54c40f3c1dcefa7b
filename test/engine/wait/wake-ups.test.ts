import { setImmediate } from 'node:timers/promises';
import type { LockType } from '../../../lib/backends/lock-backend.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { connectQuorum, startNodes } from '../../backends/quorum/redis-nodes.js';
import { isAsleep as isAsleepInSynchronizer } from '../../support/asleep.js';
import { type LockProcess, openWorld, type ProcessSettings, type StoreName } from '../../support/lock-world.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { NEVER, woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';

interface Releasable {
  release(): Promise<unknown>;
}

/** Something that one process holds and another one waits for. */
interface Kind {
  /** Resolves to a function that ends the wait. */
  hold(locks: LockService): Promise<() => Promise<unknown>>;
  /** Settles when the wait has ended and nothing is held. */
  wait(locks: LockService, other: LockService): Promise<unknown>;
}

type Acquire = (locks: LockService, other: LockService) => Promise<Releasable>;

function lockKind(held: Acquire, wanted: Acquire): Kind {
  return {
    hold: async (locks) => {
      const lease = await held(locks, locks);
      return () => lease.release();
    },
    wait: async (locks, other) => (await wanted(locks, other)).release(),
  };
}

const acquire =
  (type: 'reentrant' | 'fair' | 'read' | 'write' | 'fenced', name: string | string[] = 'order'): Acquire =>
  (locks) =>
    locks.acquire(name, { type });

const LOCKS: Record<string, Kind> = {
  plain: lockKind(acquire('reentrant'), acquire('reentrant')),
  fenced: lockKind(acquire('fenced'), acquire('fenced')),
  read: lockKind(acquire('write'), acquire('read')),
  write: lockKind(acquire('read'), acquire('write')),
  'several names': lockKind(acquire('reentrant', 'b'), acquire('reentrant', ['a', 'b'])),
  multi: lockKind(acquire('reentrant', 'b'), (locks, other) =>
    locks.getMultiLock(locks.getLock('a'), other.getLock('b')).lock(),
  ),
};

const FAIR: Record<string, Kind> = { fair: lockKind(acquire('fair'), acquire('fair')) };

const SYNCHRONIZERS: Record<string, Kind> = {
  semaphore: {
    hold: async (locks) => () => locks.getSemaphore('mail').release(),
    wait: (locks) => locks.getSemaphore('mail').acquire(),
  },
  'permit-expirable semaphore': {
    hold: async (locks) => {
      const semaphore = locks.getPermitExpirableSemaphore('licences');
      await semaphore.trySetPermits(1);
      const id = await semaphore.acquire();
      return () => semaphore.release(id);
    },
    wait: (locks) => locks.getPermitExpirableSemaphore('licences').acquire(),
  },
  latch: {
    hold: async (locks) => {
      const latch = locks.getCountDownLatch('done');
      await latch.trySetCount(1);
      return () => latch.countDown();
    },
    wait: (locks) => locks.getCountDownLatch('done').await(),
  },
};

type Type = LockType | 'flight';

/** A single flight that runs until it is released. */
const fly: Acquire = (locks) =>
  new Promise((resolve, reject) => {
    const run = locks.singleFlight(
      'order',
      () =>
        new Promise<void>((end) => {
          const release = () => {
            end();
            return run;
          };
          resolve({ release });
        }),
    );
    run.catch(reject);
  });

const ofType = (type: Type): Acquire => (type === 'flight' ? fly : acquire(type));

/** One name that is held as one type and wanted as another. */
const mixed = (types: readonly Type[]): Record<string, Kind> =>
  Object.fromEntries(
    types.flatMap((held) =>
      types
        .filter((wanted) => wanted !== held)
        .map((wanted) => [`${wanted} behind ${held}`, lockKind(ofType(held), ofType(wanted))]),
    ),
  );

const MIXED = mixed(['reentrant', 'fenced', 'fair', 'read', 'write', 'flight']);

function isAsleep({ locks, backend }: LockProcess): boolean {
  return backend.isAsleep || (backend.synchronizers !== undefined && isAsleepInSynchronizer(locks));
}

/** Settles when one of these processes waits, and sends nothing until it is woken. */
async function asleep(processes: readonly LockProcess[]): Promise<void> {
  await until(async () => {
    if (!processes.some(isAsleep)) return false;
    await setImmediate(); // the last answer is being processed, and may lead to another request
    return processes.some(isAsleep);
  });
}

/** Each wait is ended by a message only, because leases and places in the queue outlast the test. */
function describeWakeUps(
  where: string,
  store: StoreName,
  kinds: Record<string, Kind>,
  settings: () => ProcessSettings = () => ({}),
): void {
  describe(`a waiter of another process is woken, ${where}`, () => {
    const world = openWorld(store);

    it.each(Object.keys(kinds))('%s', async (kind) => {
      const { hold, wait } = kinds[kind];
      const [holder, waiter, other] = await Promise.all([1, 2, 3].map(() => world.process(settings())));
      const release = await hold(holder.locks);
      const waiting = wait(waiter.locks, other.locks);
      await asleep([waiter, other]);
      await release();
      await woken(waiting);
    });
  });
}

describe.each(['memory', 'Redis'] as const)('one name with several types (%s)', (store) => {
  const world = openWorld(store);

  it('wakes a waiter of another type when the only fair waiter leaves', async () => {
    const [holder, plain] = await world.processes(2);
    const lease = await holder.locks.acquire('order', { type: 'fair' });
    // A process that does not react to its message.
    const waiter = { key: `${world.keyPrefix}order`, type: 'fair', owner: 'other:1' } as const;
    await holder.backend.acquire({ ...waiter, leaseTime: NEVER, reserve: 0, waiterTimeout: NEVER });
    const waiting = plain.locks.acquire('order');
    await asleep([plain]);
    await lease.release();
    await holder.backend.removeWaiter(waiter);
    await (await woken(waiting)).release();
  });

  it('wakes waiters of every type one after the other', async () => {
    const types: LockType[] = ['reentrant', 'fair', 'write', 'fenced', 'read'];
    const [holder, ...waiters] = await world.processes(1 + types.length);
    const lease = await holder.locks.acquire('order');
    const waits = types.map(async (type, i) => {
      const own = await waiters[i].locks.acquire('order', { type });
      await own.release();
    });
    for (const waiter of waiters) await asleep([waiter]);
    await lease.release();
    await woken(Promise.all(waits));
  });
});

describeWakeUps('in memory', 'memory', { ...LOCKS, ...FAIR, ...MIXED, ...SYNCHRONIZERS });
describeWakeUps('on one server', 'Redis', { ...LOCKS, ...FAIR, ...MIXED, ...SYNCHRONIZERS });

describe('a cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  describeWakeUps('in a cluster', 'Redis', { ...LOCKS, ...FAIR, ...MIXED, ...SYNCHRONIZERS }, () => ({
    connection: { nodes: cluster.nodes },
  }));
});

describe('a quorum', () => {
  let servers: RedisServer[];
  beforeAll(async () => {
    servers = await startNodes(3);
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  describeWakeUps('over a quorum', 'memory', { ...LOCKS, ...mixed(['reentrant', 'fenced', 'read', 'write']) }, () => ({
    client: connectQuorum(servers),
  }));
});
