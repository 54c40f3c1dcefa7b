import { BackendError, type LockBackend } from '../../../lib/backends/lock-backend.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import {
  LockBusyError,
  LockConfigurationError,
  LockError,
  LockLostError,
  LockNotOwnedError,
  LockUnavailableError,
} from '../../../lib/engine/errors.js';
import type { LockEvents } from '../../../lib/engine/events/lock-events.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import {
  leftovers,
  ms,
  NOTHING,
  nothingIsLeft,
  openVirtualWorld,
  openWorld,
  STORES,
} from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { NEVER, woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';
import { answerLost, type Disturbance, refused } from '../../support/watched/watched-backend.js';

const FOR = { for: NEVER } as const;

describe.each(STORES)('a detached lock in %s', (store) => {
  const world = openWorld(store);

  describe.each(['reentrant', 'fenced', 'write'] as const)('of type %s', (type) => {
    it('is adopted by another process, with a higher token at each step', async () => {
      const [ann, bob] = await world.services(2);
      const lease = await ann.acquire('order', { type });
      const before = lease.fencingToken;
      const ticket = await lease.detach(FOR);
      expect(lease.held).toBe(false);
      expect(await bob.isLocked('order')).toBe(true);
      const adopted = await bob.adopt(ticket);
      expect(adopted).toMatchObject({ name: 'order', held: true });
      expect(adopted.owner).toContain(bob.engine.services.clientId);
      // The lock had another token in between.
      expect(adopted.fencingToken).toBeGreaterThan(before + 1);
      await expect(ann.acquire('order', { type, waitTime: 0 })).rejects.toBeInstanceOf(LockBusyError);
      await adopted.release();
      expect(await bob.isLocked('order')).toBe(false);
    });

    it('is handed on to those who wait for it, in both processes', async () => {
      const [ann, bob] = await world.services(2);
      const lease = await ann.acquire('order', { type });
      const waiting = [ann, bob].map((locks) => locks.withLock('order', { type }, () => locks.isLocked('order')));
      await until(() => [ann, bob].every((locks) => locks.engine.waiting('order') === 1));
      const adopted = await bob.adopt(await lease.detach(FOR));
      expect([ann, bob].map((locks) => locks.engine.waiting('order'))).toEqual([1, 1]);
      await adopted.release();
      expect(await woken(Promise.all(waiting))).toEqual([true, true]);
    });
  });

  it('ends the lease of a process that still believes to hold the lock when it adopts it', async () => {
    const [ann, bob] = await world.services(2);
    const former = await ann.acquire('order');
    const { signal } = former;
    await bob.forceRelease('order'); // ann would notice it at her next renewal
    const ticket = await (await bob.acquire('order')).detach(FOR);
    expect(former.held).toBe(true);
    const adopted = await ann.adopt(ticket);
    expect(former.held).toBe(false);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(signal.reason.message).toContain('it no longer existed when this process adopted it with a ticket');
    expect(await errorOf(former.release())).toBeInstanceOf(LockLostError);
    expect(adopted.held).toBe(true);
    await adopted.release();
    await until(async () => !(await bob.isLocked('order')));
  });

  it('is left alone by the end of the body, by release() and by shutdown of the process that detached it', async () => {
    const [ann, bob] = await world.services(2);
    let given: Lease | undefined;
    const ticket = await ann.withLock('order', async (lease) => {
      given = lease;
      const detached = await lease.detach(FOR);
      expect(currentLease()).toBeUndefined();
      await expect(ann.acquire('order', { waitTime: 0 })).rejects.toBeInstanceOf(LockBusyError);
      return detached;
    });
    await given?.release();
    await ann.close();
    expect(given?.signal.aborted).toBe(false);
    const adopted = await bob.adopt(ticket);
    await adopted.release();
  });

  it('survives the late renewal and the late release of the process that detached it', async () => {
    expect(await harmByLateCommands((await world.process()).locks, await world.service())).toEqual([]);
  });

  it('can be adopted, detached and adopted again, by the same process, too', async () => {
    const { locks, backend } = await world.process();
    const lease = await locks.acquire('order');
    const tokens = [lease.fencingToken];
    let next: Lease = lease;
    for (let n = 0; n < 3; n++) {
      next = await locks.adopt(await next.detach(FOR));
      tokens.push(next.fencingToken);
    }
    expect(tokens).toEqual([...tokens].sort((one, other) => one - other));
    await next.run(() => locks.withLock('order', async (inner) => expect(inner.owner).toBe(next.owner)));
    await next.release();
    expect(backend.count('release')).toBe(1);
    expect(await locks.isLocked('order')).toBe(false);
  });

  it('is not adopted with a ticket that was used', async () => {
    const [ann, bob, eve] = await world.services(3);
    const ticket = await (await ann.acquire('order')).detach(FOR);
    const adopted = await bob.adopt(ticket);
    const used = eve.adopt(ticket);
    await expect(used).rejects.toBeInstanceOf(LockNotOwnedError);
    await expect(used).rejects.toThrow(adopted.owner);
    await adopted.release();
    await expect(eve.adopt(ticket)).rejects.toBeInstanceOf(LockLostError);
    const acquired = await ann.acquire('order');
    await expect(eve.adopt(ticket)).rejects.toBeInstanceOf(LockNotOwnedError);
    await acquired.release();
  });

  it('is adopted by one of many that use the ticket at the same moment', async () => {
    const services = await world.services(4);
    const ticket = await (await services[0].acquire('order')).detach(FOR);
    const results = await Promise.allSettled([...services, ...services].map((locks) => locks.adopt(ticket)));
    const adopted = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    expect(adopted).toHaveLength(1);
    expect(errors.every((error) => error instanceof LockNotOwnedError)).toBe(true);
    await adopted[0].release();
  });

  it('is shown as detached, not as held by the process that detached it', async () => {
    const [ann, bob] = await world.services(2);
    await (await ann.acquire('order')).detach(FOR);
    const [owner, ...others] = (await ann.inspect('order')).owners;
    expect(others).toEqual([]);
    expect(owner).toMatchObject({ detached: true, mine: false });
    expect(owner.owner).toMatch(new RegExp(`^${ann.engine.services.clientId}:t-[0-9a-f]{40}$`));
    const busy = bob.acquire('order', { waitTime: 0 });
    await expect(busy).rejects.toThrow(/\(detached, waiting to be adopted\)/);
    expect(await bob.forceRelease('order', { owners: [owner.owner] })).toBe(true);
    expect(await bob.isLocked('order')).toBe(false);
  });

  it('is reported by events: detached in one process, acquired in the other', async () => {
    const [ann, bob] = await world.services(2);
    const detached: LockEvents['detached'][] = [];
    const acquired: LockEvents['acquired'][] = [];
    const released: unknown[] = [];
    ann.on('detached', (event) => detached.push(event));
    ann.on('released', (event) => released.push(event));
    bob.on('acquired', (event) => acquired.push(event));
    const lease = await ann.acquire('order', { group: 'orders' });
    const adopted = await bob.adopt(await lease.detach({ for: '1h' }), { group: 'jobs' });
    const { ticketOwner } = detached[0];
    expect(detached).toMatchObject([
      { name: 'order', group: 'orders', owner: lease.owner, leaseTime: 3_600_000, held: expect.any(Number) },
    ]);
    expect(acquired).toMatchObject([{ name: 'order', group: 'jobs', owner: adopted.owner, ticketOwner }]);
    expect(ticketOwner).toMatch(/:t-/);
    expect(released).toEqual([]);
    await adopted.release();
  });

  it('leaves nothing behind in the processes that detached and adopted it', async () => {
    const [ann, bob] = await world.processes(2);
    const ticket = await (await ann.locks.acquire('order')).detach(FOR);
    await nothingIsLeft(ann);
    await (await bob.locks.adopt(ticket)).release();
    await bob.locks.adopt(ticket).catch(() => {});
    await nothingIsLeft(bob);
  });

  describe('whose answers are lost', () => {
    /** The first `count` commands get no answer, whether or not they were executed. */
    const first = (count: number, disturbance: Disturbance): Disturbance => {
      let seen = 0;
      return (execute, request) => (++seen <= count ? disturbance(execute, request) : execute());
    };

    it.each([
      ['executed', answerLost],
      ['not executed', refused],
    ])('is detached by asking again, when the request was %s', async (_, disturbance) => {
      const { locks, backend } = await world.process();
      const lease = await locks.acquire('order');
      backend.disturb(first(2, disturbance), 'transfer');
      const ticket = await lease.detach(FOR);
      expect(backend.count('transfer')).toBe(3);
      const adopted = await locks.adopt(ticket);
      expect(adopted.fencingToken).toBeGreaterThan(lease.fencingToken);
      await adopted.release();
    });

    it.each([
      ['executed', answerLost],
      ['not executed', refused],
    ])('is adopted by asking again as the same owner, when the request was %s', async (_, disturbance) => {
      const { locks, backend } = await world.process();
      const ticket = await (await locks.acquire('order')).detach(FOR);
      backend.disturb(first(2, disturbance), 'adopt');
      const adopted = await locks.adopt(ticket);
      expect(backend.count('adopt')).toBe(3);
      expect((await locks.inspect('order')).owners).toMatchObject([{ owner: adopted.owner, mine: true }]);
      await adopted.release();
      expect(await locks.isLocked('order')).toBe(false);
    });

    it('is released when the adoption is given up, whichever owner has it', async () => {
      const { locks, backend } = await world.process();
      const ticket = await (await locks.acquire('order')).detach(FOR);
      backend.disturb(answerLost, 'adopt');
      const adopting = locks.adopt(ticket, { outageTimeout: 200 });
      await expect(adopting).rejects.toBeInstanceOf(LockUnavailableError);
      await until(async () => !(await locks.isLocked('order')));
    });

    it('can still be adopted when the adoption that was given up was never executed', async () => {
      const { locks, backend } = await world.process();
      const ticket = await (await locks.acquire('order')).detach(FOR);
      backend.disturb(refused, 'adopt');
      await expect(locks.adopt(ticket, { outageTimeout: 100 })).rejects.toBeInstanceOf(LockUnavailableError);
      backend.heal();
      await (await locks.adopt(ticket)).release();
    });

    it('makes callers that try once wait for the first answer only', async () => {
      const { locks, backend } = await world.process();
      const ticket = await (await locks.acquire('order')).detach(FOR);
      const first = latch();
      backend.disturb(async () => {
        await first.promise;
        throw new BackendError('no answer', 'unavailable', 'unknown');
      }, 'adopt');
      const adopting = errorOf(locks.adopt(ticket, { outageTimeout: '1m' }));
      await until(() => backend.count('adopt') === 1);
      const tried = errorOf(locks.acquire('order', { waitTime: 0 }));
      first.open();
      expect(await tried).toBeInstanceOf(LockUnavailableError);
      await locks.drain();
      await adopting;
    });

    it('is lost when its lease ends first, and both owners are released', async () => {
      const [ann, bob] = await world.processes(2);
      for (const disturbance of [answerLost, refused]) {
        const lease = await ann.locks.acquire('order', { leaseTime: 1_500 });
        const lost: LockEvents['lost'][] = [];
        const forget = ann.locks.on('lost', (event) => lost.push(event));
        const { signal } = lease;
        ann.backend.disturb(disturbance, 'transfer');
        const detaching = lease.detach(FOR);
        expect(lease.held).toBe(false);
        await expect(detaching).rejects.toBeInstanceOf(LockLostError);
        expect(signal.reason).toBeInstanceOf(LockLostError);
        expect(lost).toMatchObject([{ name: 'order', owner: lease.owner }]);
        ann.backend.heal();
        await lease.release();
        // The lock is free sooner than the ticket would have expired.
        await (await woken(bob.locks.acquire('order'))).release();
        forget();
      }
    });
  });

  it('cannot be detached when it was released by force', async () => {
    const [ann, bob] = await world.services(2);
    const lease = await ann.acquire('order');
    const { signal } = lease;
    await bob.forceRelease('order');
    await expect(lease.detach(FOR)).rejects.toBeInstanceOf(LockLostError);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(await bob.isLocked('order')).toBe(false);
  });

  it('cannot be detached twice, nor used by the one who detached it', async () => {
    const locks = await world.service();
    const lease = await locks.acquire('order');
    await lease.detach(FOR);
    for (const use of [() => lease.detach(FOR), () => lease.extend('1m'), () => lease.run(async () => {})])
      await expect(use()).rejects.toBeInstanceOf(LockNotOwnedError);
    expect(() => lease.assertHeld()).toThrow(/was detached/);
    const released = await locks.acquire('other');
    await released.release();
    await expect(released.detach(FOR)).rejects.toBeInstanceOf(LockNotOwnedError);
  });

  it('is lost, not adopted, after its time', async () => {
    const [ann, bob] = await world.services(2);
    const ticket = await (await ann.acquire('order')).detach({ for: 100 });
    await until(async () => !(await bob.isLocked('order')));
    await expect(bob.adopt(ticket)).rejects.toBeInstanceOf(LockLostError);
    const other = await bob.acquire('order');
    await expect(bob.adopt(ticket)).rejects.toBeInstanceOf(LockNotOwnedError);
    expect(other.held).toBe(true);
    await other.release();
  });
});

describe('what cannot be detached or adopted', () => {
  const world = openWorld('memory');

  it('is refused with the reason, and stays held', async () => {
    const locks = await world.service();
    const several = (await locks.acquire(['a', 'b'])) as Lease;
    const read = await locks.acquire('read', { type: 'read' });
    const fair = await locks.acquire('fair', { type: 'fair' });
    const outer = await locks.acquire('outer');
    await outer.run(async () => {
      const inner = await locks.acquire('outer');
      for (const lease of [outer, inner]) await expect(lease.detach(FOR)).rejects.toThrow(/2 leases share the lock/);
      await inner.release();
    });
    const written = await locks.acquire('written', { type: 'write' });
    await written.run(() => locks.withLock('written', { type: 'read' }, async () => {}));
    const elsewhere = await world.service({ keyPrefix: 'elsewhere:' });
    const combined = await locks.getRedLock(locks.getLock('c'), elsewhere.getLock('c')).lock();
    for (const [lease, why] of [
      [several, /a lease of several locks/],
      [read, /readers share it/],
      [fair, /the head of its queue/],
      [written, /the read lock of the same name/],
      [combined, /multi-lock or red lock/],
    ] as const) {
      const refusal = lease.detach(FOR);
      await expect(refusal).rejects.toBeInstanceOf(LockConfigurationError);
      await expect(refusal).rejects.toThrow(why);
      expect(lease.held).toBe(true);
      await lease.release();
    }
    await (await locks.adopt(await outer.detach(FOR))).release();
  });

  it('is refused on a backend that cannot transfer locks between processes', async () => {
    const inner = new MemoryBackend({ runtime: nodeRuntime, store: new MemoryStore() });
    const backend = new Proxy<LockBackend>(inner, {
      get: (target, name) => {
        const value = name === 'adopt' ? undefined : (target as never)[name];
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
      },
    });
    const locks = await world.service({ client: { backend, id: 'client' } });
    const lease = await locks.acquire('order');
    await expect(lease.detach(FOR)).rejects.toThrow(/memory.*cannot be detached: it cannot transfer/);
    expect(lease.held).toBe(true);
    await lease.release();
    const quorum = createLockService({
      quorum: [1, 2, 3].map((port) => `redis://127.0.0.1:${port}`),
      logger: { warn() {}, error() {} },
    });
    await expect(quorum.adopt('x')).rejects.toThrow(/quorum.*cannot be detached: several servers/);
    await quorum.close();
  });

  it.each([
    [undefined, /for how|how long/],
    [{}, /for is undefined/],
    [{ for: '10ms' }, /at least 100 ms/],
    [{ for: '1m', until: 5 }, /there is no option 'until'/],
  ])('is refused with the option that is wrong: %j', async (options, message) => {
    const locks = await world.service();
    const lease = await locks.acquire('order');
    const refusal = lease.detach(options as never);
    await expect(refusal).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(refusal).rejects.toThrow(message);
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it.each([
    undefined,
    42,
    '',
    'lock-ticket-1.',
    'lock-ticket-1.e30',
    'secret-of-mine',
    `lock-ticket-1.${'A'.repeat(20_000)}`,
    `lock-ticket-1.${encoded(['lock:order', 'fair', 'client', 'f'.repeat(32)])}`,
    `lock-ticket-1.${encoded(['lock:order', 'reentrant', 'cli:ent', 'f'.repeat(32)])}`,
    `lock-ticket-1.${encoded(['lock:order', 'reentrant', 'client', 'secret-of-mine'])}`,
    `lock-ticket-1.${encoded(['lock:order', 'reentrant', 'client'])}`,
  ])('is refused when it is no ticket, which is not repeated in the error: %j', async (ticket) => {
    const { locks, backend } = await world.process();
    const refusal = locks.adopt(ticket as string);
    await expect(refusal).rejects.toBeInstanceOf(LockError);
    await expect(refusal).rejects.toThrow(/is not a ticket/);
    await expect(refusal).rejects.not.toThrow(/secret-of-mine|AAAA|e30/);
    expect(backend.count()).toBe(0);
  });

  it('is refused when the ticket is of another keyPrefix, or an option is wrong', async () => {
    const locks = await world.service();
    const other = await world.service({ keyPrefix: 'other:' });
    const ticket = await (await locks.acquire('order')).detach(FOR);
    await expect(other.adopt(ticket)).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(other.adopt(ticket)).rejects.toThrow(/keyPrefix of this service is 'other:'/);
    await expect(locks.adopt(ticket, { type: 'read' } as never)).rejects.toThrow(/there is no option 'type'/);
    await expect(locks.adopt(ticket, { leaseTime: 1 })).rejects.toThrow(/leaseTime is 1/);
    const adopted = await locks.adopt(ticket, { leaseTime: '1m' });
    expect(adopted.remainingTime()).toBeLessThanOrEqual(60_000);
    await adopted.release();
  });
});

describe('a check for late commands', () => {
  const world = openWorld('memory');

  it('finds a backend whose detached locks keep the owner of the process that detached them', async () => {
    const store = new MemoryStore();
    const process = (id: string) => {
      const inner = new MemoryBackend({ runtime: nodeRuntime, store });
      return world.service({ client: { backend: keepingOwners(inner), id } });
    };
    expect(await harmByLateCommands(await process('ann'), await process('bob'))).toEqual([
      'a late renewal shortened the lease of the ticket',
      'a late release freed the lock of the ticket',
    ]);
  });
});

describe('a detached lock as time goes by', () => {
  const world = openVirtualWorld();

  it('is not renewed by the process that detached it, and is renewed by the one that adopted it', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order');
    const ticket = await lease.detach({ for: '5m' });
    await runtime.advance(290_000);
    expect(backend.count('renew')).toBe(0);
    expect(await locks.isLocked('order')).toBe(true);
    const adopted = await locks.adopt(ticket);
    await runtime.advance(300_000);
    expect(adopted.held).toBe(true);
    expect(backend.count('renew')).toBeGreaterThan(25);
    await adopted.release();
    await runtime.settle();
    expect(leftovers({ locks, backend, runtime, logger: { warnings: [], errors: [] } as never })).toEqual(NOTHING);
  });

  it('is free after its time, and those who wait for it are served then', async () => {
    const ann = await world.process();
    const bob = await world.process();
    const { runtime } = ann;
    const lease = await ann.locks.acquire('order');
    const waiting = bob.locks.acquire('order');
    await runtime.advance(1_000);
    const ticket = await lease.detach({ for: '5s' });
    const acquired = await runtime.until(waiting, 5_100);
    await expect(ann.locks.adopt(ticket)).rejects.toBeInstanceOf(LockNotOwnedError);
    await acquired.release();
  });

  it('becomes free within a lease after its adopter died, also for those who waited for the ticket', async () => {
    const ann = await world.process();
    const bob = await world.process();
    const eve = await world.process();
    const { runtime } = ann;
    const ticket = await (await ann.locks.acquire('order')).detach({ for: '1h' });
    const waiting = eve.locks.acquire('order');
    await runtime.advance(1_000);
    await bob.locks.adopt(ticket);
    bob.backend.disturb(refused, 'renew');
    const acquired = await runtime.until(waiting, 31_000);
    await acquired.release();
  });

  it('is given up by a process that has drained while it adopts', async () => {
    const { locks, backend, runtime } = await world.process({ shutdownTimeout: ms(1_000) });
    const ticket = await (await locks.acquire('order')).detach({ for: '1h' });
    let answer = () => {};
    backend.disturb(async (execute) => {
      const reply = await execute();
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return reply;
    }, 'adopt');
    const adopting = locks.adopt(ticket);
    await runtime.settle();
    await runtime.until(locks.drain());
    const closing = locks.close();
    answer();
    await expect(runtime.until(adopting)).rejects.toThrow(/shutting down/);
    await runtime.until(closing);
    await expect(locks.adopt(ticket)).rejects.toThrow(/shutting down/);
  });
});

function encoded(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/**
 * Detaches and adopts a lock. After each step, it sends the commands that the former holder may still have had under
 * way.
 *
 * @returns what these commands changed
 */
async function harmByLateCommands(
  ann: Awaited<ReturnType<ReturnType<typeof openWorld>['service']>>,
  bob: typeof ann,
): Promise<readonly string[]> {
  const harm: string[] = [];
  const { backend } = ann.engine.services;
  const lease = await ann.acquire('order');
  const { key, type, owner } = ann.engine.services.heldLocks()[0];
  const sendLate = async (whose: string) => {
    await backend.renew({ key, type, owner, leaseTime: 1_000 });
    const { owners } = await backend.inspect(key);
    if (owners.some(({ remaining }) => remaining <= 1_000)) harm.push(`a late renewal shortened the lease of ${whose}`);
    await backend.release({ key, type, owner });
    if ((await backend.inspect(key)).mode === 'free') harm.push(`a late release freed the lock of ${whose}`);
  };
  const ticket = await lease.detach(FOR);
  await sendLate('the ticket');
  const adopted = await bob.adopt(ticket).catch(() => undefined);
  if (adopted === undefined) return harm;
  await sendLate('the adopter');
  await adopted.release();
  return harm;
}

/** A backend that only extends the lease of a lock that is detached. */
function keepingOwners(backend: MemoryBackend): LockBackend {
  return new Proxy<LockBackend>(backend, {
    get(target, name) {
      const value = (target as never)[name] as unknown;
      if (name === 'transfer')
        return async ({ key, type, from, leaseTime }: Parameters<LockBackend['transfer']>[0]) => {
          await backend.renew({ key, type, owner: from, leaseTime });
          return { acquired: true, token: 1, reserved: 0 };
        };
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
