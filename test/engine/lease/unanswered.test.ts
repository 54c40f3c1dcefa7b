import {
  type AcquireReply,
  type AcquireRequest,
  BackendError,
  type LockType,
  type OwnerRef,
  type TransferRequest,
} from '../../../lib/backends/lock-backend.js';
import type { MultiLease } from '../../../lib/engine/terms/lease.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { SpentOwners } from '../../support/watched/spent-owners.js';
import { answerAfter, answerLost, type Disturbance, refused } from '../../support/watched/watched-backend.js';

/** Longer than everything that a test waits for, apart from the end of a lease. */
const LEASE = { leaseTime: '30s' } as const;

/** One of the places in the code that request a lock from the backend. */
interface Way {
  readonly what: string;
  readonly names: readonly string[];
  /** The options of a rival that wants the first of the locks. */
  readonly rival: LockType;
  /** Whether the process keeps the lock by another lease, so that nobody else can have it meanwhile. */
  readonly keepsOthersOut?: boolean;
  /** Whether the request replaces an owner that has the lock. */
  readonly replacesOwner?: boolean;
  /** Prepares the request. */
  open(process: VirtualProcess): Promise<Asker>;
}

interface Asker {
  ask(options?: LockOptions): Promise<MultiLease>;
  /** Releases what the preparation acquired. */
  end(): Promise<unknown>;
}

const alone = (type: LockType): Way => ({
  what: `a ${type} lock`,
  names: ['order'],
  rival: type === 'read' ? 'write' : type,
  open: async ({ locks }) => ({
    ask: (options) => locks.acquire('order', { ...LEASE, type, ...options }),
    end: async () => {},
  }),
});

const several = (how: 'in one step' | 'one by one'): Way => ({
  what: `several locks ${how}`,
  names: ['order', 'stock'],
  rival: 'reentrant',
  open: async ({ locks, backend }) => {
    if (how === 'one by one') backend.canAcquireTogether = () => false;
    return { ask: (options) => locks.acquire(['order', 'stock'], { ...LEASE, ...options }), end: async () => {} };
  },
});

const passedOn = (type: 'reentrant' | 'fenced' | 'write'): Way => ({
  what: `a ${type} lock that is passed on within the process`,
  names: ['order'],
  rival: type,
  replacesOwner: true,
  open: async ({ locks }) => {
    const before = await locks.acquire('order', { ...LEASE, type });
    const ask = (options?: LockOptions) => {
      const next = locks.acquire('order', { ...LEASE, type, ...options });
      void before.release().catch(() => {});
      return next;
    };
    return { ask, end: async () => {} };
  },
});

const DOWNGRADE: Way = {
  what: 'a read lock inside of the write lock',
  names: ['order'],
  rival: 'write',
  keepsOthersOut: true,
  open: async ({ locks }) => {
    const write = await locks.acquire('order', { type: 'write', leaseTime: '5m' });
    const ask = (options?: LockOptions) =>
      write.run(() => locks.acquire('order', { ...LEASE, type: 'read', ...options }));
    return { ask, end: () => write.release() };
  },
};

const SEVERAL = [several('in one step'), several('one by one')];
const PASSED_ON = (['reentrant', 'fenced', 'write'] as const).map(passedOn);
const ALONE = (['reentrant', 'fenced', 'fair', 'read', 'write'] as const).map(alone);
const OPEN_TO_OTHERS: readonly Way[] = [...ALONE, ...SEVERAL, ...PASSED_ON];
const WAYS: readonly Way[] = [...OPEN_TO_OTHERS, DOWNGRADE];

/** What a process requested from its backend, and what it released, since the first of its answers was disturbed. */
interface Traffic {
  readonly taking: readonly string[];
  readonly givenBack: readonly string[];
  /**
   * The owner ids that were sent in an acquisition after their release: a late copy of the release would free the lock.
   */
  readonly reused: readonly string[];
}

/** `first` decides how the first request for a lock is answered; later ones are answered as usual. */
function disturbFirst({ backend }: VirtualProcess, first: Disturbance): Traffic {
  const traffic = { taking: [] as string[], givenBack: [] as string[], reused: [] as string[] };
  const spent = new SpentOwners((_, id) => traffic.reused.push(id));
  let isFirst = true;
  const taking: Disturbance = (execute, request) => {
    for (const { key, owner } of ownersIn(request)) {
      traffic.taking.push(owner);
      spent.acquiring({ key, owner });
    }
    if (!isFirst) return execute();
    isFirst = false;
    return first(execute, request);
  };
  const givingBack: Disturbance = (execute, request) => {
    traffic.givenBack.push((request as OwnerRef).owner);
    spent.givingBack(request as OwnerRef);
    return execute();
  };
  backend.disturb(taking, 'acquire', 'acquireAll', 'transfer');
  backend.disturb(givingBack, 'release', 'removeWaiter');
  return traffic;
}

function ownersIn(request: unknown): readonly Pick<OwnerRef, 'key' | 'owner'>[] {
  if (Array.isArray(request)) return request as AcquireRequest[];
  const { key, owner, to } = request as AcquireRequest & TransferRequest;
  return [{ key, owner: to ?? owner }];
}

/** One slow node of a quorum passes a lock on by itself, after the others have done so. */
async function executeCopy(
  { replacesOwner }: Way,
  { backend }: VirtualProcess,
  execute: () => Promise<unknown>,
  request: unknown,
): Promise<void> {
  if (!replacesOwner) await execute();
  else {
    const { key, type, to, leaseTime } = request as TransferRequest;
    const acquisition = { key, type, owner: to, leaseTime, reserve: 0, waiterTimeout: 0 };
    await backend.acquire(acquisition);
  }
}

describe('an acquisition whose answer is lost, late or wrong', () => {
  const world = openVirtualWorld();

  const open = async (way: Way) => {
    const [process, other] = [await world.process(), await world.process()];
    return { process, other, runtime: process.runtime, asker: await way.open(process) };
  };

  /** Expects that the locks are free soon after the caller has released all of them. */
  const isFree = async (way: Way, { locks }: VirtualProcess) => {
    for (const name of way.names) expect(await locks.isLocked(name)).toBe(false);
  };

  const isHeld = async ({ locks }: VirtualProcess, way: Way, lease: MultiLease) => {
    expect(lease.held).toBe(true);
    for (const name of way.names) {
      const owners = (await locks.inspect(name)).owners.map(({ owner }) => owner);
      expect(owners).toContain(lease.owners.get(name));
    }
  };

  const isServed = (asked: Promise<unknown>) => {
    const state = { served: false };
    asked.then(
      () => {
        state.served = true;
      },
      () => {},
    );
    return state;
  };

  describe.each(WAYS.map((way) => [way.what, way] as const))('of %s', (_, way) => {
    it('grants nothing after its lease has ended, and is tried again', async () => {
      const { process, other, runtime, asker } = await open(way);
      const late = new Promise<void>((resolve) => runtime.timer(31_000, resolve));
      const traffic = disturbFirst(process, answerAfter(late));
      const asked = asker.ask();
      const state = isServed(asked);
      await runtime.advance(30_500);
      const rival = way.keepsOthersOut
        ? undefined
        : await other.locks.acquire(way.names[0], { type: way.rival, waitTime: 0 });
      await runtime.advance(400);
      expect(state.served).toBe(false);
      await runtime.advance(2_000);
      if (rival !== undefined) expect([state.served, rival.held]).toEqual([false, true]);
      await rival?.release();
      const lease = await runtime.until(asked);
      await isHeld(other, way, lease);
      expect(lease.remainingTime()).toBeGreaterThan(20_000);
      await asker.end();
      await lease.release();
      await runtime.advance(1_000);
      await isFree(way, other);
      expect(traffic.reused).toEqual([]);
    });

    it('is tried again, and gives nothing back, when it was certainly not executed', async () => {
      const { process, other, runtime, asker } = await open(way);
      const traffic = disturbFirst(process, refused);
      const lease = await runtime.until(asker.ask());
      await isHeld(other, way, lease);
      await asker.end();
      await lease.release();
      await runtime.advance(1_000);
      await isFree(way, other);
      // What was granted, and from which request.
      const asked = way.keepsOthersOut || way.replacesOwner ? 1 : 0;
      expect(traffic.givenBack).toHaveLength(way.names.length + asked);
      expect(traffic.reused).toEqual([]);
    });

    it('is given back, and tried again long before its lease ends, when it was executed without an answer', async () => {
      const { process, other, runtime, asker } = await open(way);
      const traffic = disturbFirst(process, answerLost);
      const lease = await runtime.until(asker.ask(), 5_000);
      await isHeld(other, way, lease);
      await asker.end();
      await lease.release();
      await runtime.advance(1_000);
      await isFree(way, other);
      expect(traffic.reused).toEqual([]);
    });

    it('is given back when it was executed without an answer and its caller has left', async () => {
      const { process, other, runtime, asker } = await open(way);
      const answer = latch();
      const traffic = disturbFirst(process, async (execute, request) => {
        const reply = answerLost(execute, request);
        await answer.promise;
        return reply;
      });
      const left = errorOf(asker.ask({ waitTime: 100 }));
      await runtime.until(left);
      answer.open();
      await runtime.settle();
      await asker.end();
      await runtime.advance(1_000);
      await isFree(way, other);
      expect(traffic.reused).toEqual([]);
    });

    it('is given back when it was granted after its caller had left', async () => {
      const { process, other, runtime, asker } = await open(way);
      const answer = latch();
      const traffic = disturbFirst(process, answerAfter(answer.promise));
      const left = errorOf(asker.ask({ waitTime: 100 }));
      await runtime.until(left);
      answer.open();
      await runtime.settle();
      await asker.end();
      await runtime.advance(1_000);
      await isFree(way, other);
      expect(traffic.reused).toEqual([]);
    });

    describe('leaves nothing behind when a copy of it is executed later,', () => {
      /** When the copy is executed, and until when it could be. */
      const COPY = 1_500;
      const VALID = 2_000;

      /** A request of which a copy is executed later. The test decides what is answered at once. */
      const withCopy =
        (other: VirtualProcess, answer: (execute: () => Promise<AcquireReply>, validUntil: number) => unknown) =>
        async (execute: () => Promise<AcquireReply>, request: unknown) => {
          const { runtime } = other;
          runtime.timer(COPY, () => void executeCopy(way, other, execute, request));
          return answer(execute, runtime.wall() + VALID);
        };

      const ANSWERS: readonly [string, (execute: () => Promise<AcquireReply>, validUntil: number) => unknown][] = [
        [
          'and it failed',
          (_, validUntil) => {
            throw new BackendError('no answer in time', 'unavailable', 'unknown', { validUntil });
          },
        ],
        ['and it was granted', async (execute, validUntil) => ({ ...(await execute()), validUntil })],
        ['and the lock was busy', (_, validUntil) => ({ acquired: false, index: 0, remaining: 5, validUntil })],
      ];

      it('and it was granted, and is released by force while it is held', async () => {
        const { process, other, runtime, asker } = await open(way);
        const [[, answer]] = ANSWERS.filter(([what]) => what === 'and it was granted');
        const traffic = disturbFirst(process, withCopy(other, answer));
        const lease = await runtime.until(asker.ask(), 1_000);
        expect(await process.locks.forceRelease('order')).toBe(true);
        await errorOf(lease.release());
        await asker.end().catch(() => {});
        await runtime.advance(2 * VALID);
        await isFree(way, other);
        expect(traffic.reused).toEqual([]);
      });

      it.each(ANSWERS)('%s', async (what, answer) => {
        // A transfer never gets this answer.
        if (way.what.includes('passed on') && what.includes('busy')) return;
        const { process, other, runtime, asker } = await open(way);
        const traffic = disturbFirst(process, withCopy(other, answer));
        const asked = asker.ask();
        // For a lock that the same process has for writing, it means that the write lock is lost.
        if (way.keepsOthersOut && what.includes('busy')) await runtime.until(errorOf(asked));
        else await (await runtime.until(asked, 1_000)).release();
        await asker.end();
        expect(runtime.monotonic()).toBeLessThan(COPY);
        await runtime.advance(2 * VALID);
        await isFree(way, other);
        expect(traffic.reused).toEqual([]);
      });
    });
  });

  describe.each(OPEN_TO_OTHERS.map((way) => [way.what, way] as const))('of %s', (_, way) => {
    it.each(['granted', 'left without an answer'])(
      'grants nothing that was released by force before it was %s',
      async (how) => {
        const { process, other, runtime, asker } = await open(way);
        const answer = latch();
        const traffic = disturbFirst(process, async (execute, request) => {
          const reply = how === 'granted' ? execute() : answerLost(execute, request);
          reply.catch(() => {});
          await answer.promise;
          return reply;
        });
        const asked = asker.ask();
        const state = isServed(asked);
        await runtime.settle();
        const last = way.names[way.names.length - 1];
        const name = way.what.includes('one by one') ? way.names[0] : last;
        const { owners } = await process.locks.inspect(name);
        expect(await process.locks.forceRelease(name)).toBe(true);
        const rival = await other.locks.acquire(name, { type: way.rival, waitTime: 0 });
        answer.open();
        await runtime.advance(2_000);
        expect([state.served, rival.held]).toEqual([false, true]);
        await rival.release();
        const lease = await runtime.until(asked);
        await isHeld(other, way, lease);
        expect(owners.map(({ owner }) => owner)).not.toContain(lease.owners.get(name));
        await lease.release();
        await runtime.advance(1_000);
        await isFree(way, other);
        expect(traffic.reused).toEqual([]);
      },
    );

    it('leaves nothing behind when it was released by force before it was granted, and a copy is executed later', async () => {
      const { process, other, runtime, asker } = await open(way);
      const answer = latch();
      const traffic = disturbFirst(process, async (execute, request) => {
        const reply = await execute();
        runtime.timer(1_500, () => void executeCopy(way, other, execute, request));
        await answer.promise;
        return { ...reply, validUntil: runtime.wall() + 2_000 };
      });
      const asked = asker.ask();
      await runtime.settle();
      const name = way.names[0];
      expect(await process.locks.forceRelease(name)).toBe(true);
      answer.open();
      await (await runtime.until(asked, 1_000)).release();
      await runtime.advance(4_000);
      await isFree(way, other);
      expect(traffic.reused).toEqual([]);
    });
  });

  describe.each<LockType>(['fair', 'write'])('of a %s lock that waits in the backend', (type) => {
    /** Expects that nobody is in the queue before a caller that arrives now. */
    const isPassable = async (rival: MultiLease) => {
      await rival.release();
      const { locks } = await world.process();
      const next = await locks.acquire('order', { type: type === 'write' ? 'read' : type, waitTime: 0 });
      await next.release();
    };

    it('leaves no place in the queue when a copy of it is executed later, and its caller has left', async () => {
      const { process, other, runtime, asker } = await open(alone(type));
      const rival = await other.locks.acquire('order', { type });
      disturbFirst(process, async (execute) => {
        runtime.timer(1_500, () => void execute());
        throw new BackendError('no answer in time', 'unavailable', 'unknown', { validUntil: runtime.wall() + 2_000 });
      });
      await runtime.until(errorOf(asker.ask({ waitTime: 300 })));
      await runtime.advance(3_000);
      await isPassable(rival);
    });

    it('leaves no place in the queue when it finds the lock busy after its caller has left', async () => {
      const { process, other, runtime, asker } = await open(alone(type));
      const rival = await other.locks.acquire('order', { type });
      const answer = latch();
      disturbFirst(process, answerAfter(answer.promise));
      await runtime.until(errorOf(asker.ask({ waitTime: 300 })));
      answer.open();
      await runtime.advance(100);
      await isPassable(rival);
    });
  });

  it.each<LockType>(['reentrant', 'fenced', 'read', 'write'])(
    'of a %s lock leaves no place in line when a copy of it is executed after the release',
    async (type) => {
      const { process, other, runtime } = await open(alone(type));
      const rival = await other.locks.acquire('order', { type: 'write' });
      const waiting = process.locks.acquire('order', { type });
      await runtime.settle();
      await rival.release();
      await (await runtime.until(waiting)).release();
      // The process still listens, so it enters the line with its first request.
      let key = '';
      disturbFirst(process, async (execute, request) => {
        runtime.timer(1_500, () => void execute());
        key = (request as AcquireRequest).key;
        return { ...(await execute()), validUntil: runtime.wall() + 2_000 };
      });
      await (await process.locks.acquire('order', { type })).release();
      // It lets those go first who heard of its own release.
      const next = await runtime.until(other.locks.acquire('order', { type: 'write' }));
      await runtime.advance(1_600);
      expect((await other.backend.inspect(key)).queue).toHaveLength(1);
      await runtime.advance(1_400);
      expect((await other.backend.inspect(key)).queue).toEqual([]);
      await next.release();
    },
  );

  describe.each(ALONE.map((way) => [way.what, way] as const))('of %s', (_, way) => {
    it('continues as another owner when it got no answer, and is released by force before it is tried again', async () => {
      const { process, other, runtime, asker } = await open(way);
      // No release arrives, so the backend still has the locks.
      process.backend.disturb(refused, 'release');
      let executed: string | undefined;
      process.backend.disturb(async (execute, request) => {
        if (executed !== undefined) return execute();
        executed = (request as AcquireRequest).owner;
        return answerLost(execute, request);
      }, 'acquire');
      const asked = asker.ask();
      await runtime.settle();
      expect(await process.locks.forceRelease('order')).toBe(true);
      process.backend.heal();
      const lease = await runtime.until(asked);
      await isHeld(other, way, lease);
      expect(lease.owners.get('order')).not.toBe(executed);
      await lease.release();
    });
  });

  it('leaves nothing behind of a read lock in the write lock, both of which were released by force, when a copy is executed later', async () => {
    const { process, other, runtime, asker } = await open(DOWNGRADE);
    const answer = latch();
    disturbFirst(process, async (execute) => {
      const reply = await execute();
      runtime.timer(1_500, () => void execute());
      await answer.promise;
      return { ...reply, validUntil: runtime.wall() + 2_000 };
    });
    const asked = errorOf(asker.ask());
    await runtime.settle();
    expect(await process.locks.forceRelease('order')).toBe(true);
    answer.open();
    await runtime.until(asked);
    await errorOf(asker.end());
    await runtime.advance(4_000);
    await isFree(DOWNGRADE, other);
  });

  describe('of a read lock in the write lock', () => {
    const VALID = 2_000;

    it.each<[string, boolean]>([
      ['when it was granted', true],
      ['when the lock was busy', false],
    ])('leaves nothing behind when a copy is executed later: %s', async (_, acquired) => {
      const { process, other, runtime, asker } = await open(DOWNGRADE);
      const answer = latch();
      disturbFirst(process, async (execute) => {
        runtime.timer(1_500, () => void execute());
        const validUntil = runtime.wall() + VALID;
        if (acquired) return { ...(await execute()), validUntil };
        await answer.promise;
        return { acquired: false, remaining: 5, validUntil };
      });
      const asked = asker.ask();
      await runtime.settle();
      await asker.end();
      answer.open();
      await (await runtime.until(asked)).release();
      await runtime.advance(2 * VALID);
      await isFree(DOWNGRADE, other);
    });

    it.each(['first', 'last'])(
      'leaves nothing behind when its renewals got no answer, and it is given back %s',
      async (order) => {
        const [process, other] = [await world.process(), await world.process()];
        const { locks, backend, runtime } = process;
        const write = await locks.acquire('order', { type: 'write', leaseTime: '5m' });
        const read = await write.run(() => locks.acquire('order', { type: 'read' }));
        backend.disturb(answerLost, 'renew');
        await runtime.advance(30_000);
        expect([read.held, write.held]).toEqual([false, true]);
        if (order === 'last') await write.release();
        await errorOf(read.release());
        if (order === 'first') await write.release();
        await runtime.advance(1_000);
        await isFree(DOWNGRADE, other);
      },
    );
  });

  it('leaves nothing behind of an owner that has passed its lock on, when a copy of its own acquisition is executed later', async () => {
    const way = passedOn('reentrant');
    const [process, other] = [await world.process(), await world.process()];
    const { runtime } = process;
    const traffic = disturbFirst(process, async (execute) => {
      runtime.timer(1_500, () => void execute());
      return { ...(await execute()), validUntil: runtime.wall() + 2_000 };
    });
    const { ask } = await way.open(process);
    const lease = await runtime.until(ask());
    expect(process.backend.count('transfer')).toBe(1);
    await lease.release();
    await runtime.advance(4_000);
    await isFree(way, other);
    expect(traffic.reused).toEqual([]);
  });

  it('of several locks holds none of them while it is not tried again', async () => {
    const way = several('one by one');
    const { process, other, runtime, asker } = await open(way);
    process.backend.disturb(
      (execute, request) => ((request as AcquireRequest).key.endsWith('stock') ? refused(execute, request) : execute()),
      'acquire',
    );
    const asked = asker.ask();
    await runtime.advance(100);
    const rival = await other.locks.acquire('order', { waitTime: 0 });
    await rival.release();
    process.backend.heal();
    await (await runtime.until(asked)).release();
  });
});
