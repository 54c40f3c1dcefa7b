import { BackendError } from '../../lib/backends/lock-backend.js';
import { ticketOwner } from '../../lib/backends/owner-ids.js';
import { readTicket, writeTicket } from '../../lib/engine/detached/lease-ticket.js';
import {
  LockAbortedError,
  LockKeyError,
  LockLostError,
  LockNotOwnedError,
  LockUnavailableError,
} from '../../lib/engine/errors.js';
import type { Lease } from '../../lib/engine/terms/lease.js';
import { leftovers, ms, NOTHING, openVirtualWorld } from '../support/lock-world.js';
import { errorOf, latch } from '../support/section.js';
import { answerAfter, type Disturbance, refused } from '../support/watched/watched-backend.js';

describe('a process that adopts a lock', () => {
  const world = openVirtualWorld();

  const open = async () => {
    const [ann, bob] = [await world.process(), await world.process({ outageTimeout: ms(1_000) })];
    const lease = await ann.locks.acquire('order');
    const ticket = await lease.detach({ for: '1h' });
    return { ann, ...bob, bob, ticket };
  };
  const failing =
    (kind: BackendError['kind'], options = {}): Disturbance =>
    async () => {
      throw new BackendError('no usable answer', kind, 'unknown', options);
    };

  it.each([
    ['denied', {}, LockUnavailableError, "The lock 'order' could not be acquired: no usable answer"],
    ['closed', {}, LockUnavailableError, "The lock 'order' could not be acquired: no usable answer"],
    ['key', {}, LockKeyError, "The lock 'order' cannot be used: no usable answer"],
    ['unavailable', { spent: true }, LockUnavailableError, "The lock 'order' could not be acquired: no usable answer"],
  ] as const)('does not ask again after a failure that cannot pass: %s %j', async (kind, options, type, message) => {
    const { locks, backend, runtime, ticket, bob } = await open();
    backend.disturb(failing(kind, options), 'adopt');
    const error = await runtime.until(errorOf(locks.adopt(ticket)));
    expect(error).toBeInstanceOf(type);
    expect([error.message, backend.count('adopt'), runtime.monotonic()]).toEqual([message, 1, 0]);
    backend.heal();
    await runtime.advance(5_000);
    expect(leftovers(bob)).toEqual(NOTHING);
  });

  it('asks again until its outageTimeout has ended', async () => {
    const { locks, backend, runtime, ticket } = await open();
    await runtime.advance(5_000);
    const times: number[] = [];
    backend.disturb(async () => {
      times.push(runtime.monotonic() - 5_000);
      throw new BackendError('the connection is closed', 'unavailable', 'refused');
    }, 'adopt');
    expect(await runtime.until(errorOf(locks.adopt(ticket)))).toBeInstanceOf(LockUnavailableError);
    expect(times.length).toBeGreaterThan(3);
    expect(times.at(-1)).toBeGreaterThanOrEqual(1_000);
    expect(times.at(-2)).toBeLessThan(1_000);
  });

  it('does not ask again at the moment at which its outageTimeout ends', async () => {
    const { locks, backend, runtime, ticket } = await open();
    runtime.random = () => 1;
    const times: number[] = [];
    backend.disturb(async () => {
      times.push(runtime.monotonic());
      throw new BackendError('the connection is closed', 'unavailable', 'refused');
    }, 'adopt');
    await runtime.until(errorOf(locks.adopt(ticket, { outageTimeout: 350 })));
    expect(times).toEqual([0, 50, 150, 350]);
  });

  it('makes callers that try once wait for its first answer only', async () => {
    const { locks, backend, runtime, ticket } = await open();
    const answer = latch();
    backend.disturb(async () => {
      await answer.promise;
      throw new BackendError('no answer', 'unavailable', 'unknown');
    }, 'adopt');
    const adopting = errorOf(locks.adopt(ticket));
    const tried = errorOf(locks.acquire('order', { waitTime: 0 }));
    await runtime.advance(30);
    answer.open();
    expect(await runtime.until(tried)).toBeInstanceOf(LockUnavailableError);
    expect(runtime.monotonic()).toBe(30);
    await runtime.until(adopting);
  });

  it('does not use an answer that comes after the lease that it grants', async () => {
    const { locks, backend, runtime, ticket } = await open();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'adopt');
    const adopting = errorOf(locks.adopt(ticket, { leaseTime: 2_000 }));
    await runtime.advance(2_000);
    answer.open();
    const error = await runtime.until(adopting);
    expect(error).toBeInstanceOf(LockLostError);
    expect(error.message).toBe(
      "The lock 'order' cannot be adopted: the answer came after the lease of 2000 ms had ended",
    );
    expect(backend.count('adopt')).toBe(1);
    await runtime.settle();
    expect(backend.count('release')).toBe(1);
  });

  it('does not get a lock that it releases by force meanwhile', async () => {
    const { locks, backend, runtime, ticket } = await open();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'adopt');
    const adopting = errorOf(locks.adopt(ticket));
    await runtime.settle();
    await locks.forceRelease('order');
    answer.open();
    const error = await adopting;
    expect(error).toBeInstanceOf(LockLostError);
    expect(error.message).toBe("The lock 'order' cannot be adopted: it was force-released");
  });

  it('finds out whether the lock is free and, if not, who holds it', async () => {
    const { ann, locks, ticket } = await open();
    await ann.locks.forceRelease('order');
    expect(await errorOf(locks.adopt(ticket))).toMatchObject({
      name: 'LockLostError',
      lockName: 'order',
      message:
        "The lock 'order' cannot be adopted: it is free, because its time is over, or it was already adopted and released",
    });
    const { owner } = await ann.locks.acquire('order');
    const error = await errorOf(locks.adopt(ticket));
    expect(error).toBeInstanceOf(LockNotOwnedError);
    expect(error.message).toBe(
      `The lock 'order' cannot be adopted: ${owner} holds it. Its ticket was used before, or its time is over`,
    );
  });

  it('waits for the answer to its own request for the lock, and lets its callers ask after that', async () => {
    const { locks, backend, runtime, ticket } = await open();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const waiting = locks.acquire('order');
    await runtime.settle();
    const adopting = locks.adopt(ticket);
    await runtime.settle();
    expect(backend.commands).toEqual(['acquire']);
    backend.heal();
    answer.open();
    const adopted = await runtime.until(adopting);
    expect(backend.commands).toEqual(['acquire', 'adopt']);
    await adopted.release();
    await (await runtime.until(waiting)).release();
  });

  it('loses the lock that it believed to hold, which was lost without its notice', async () => {
    const [{ locks }, other] = [await world.process(), await world.process()];
    const former = await locks.acquire('order');
    const { signal } = former;
    await other.locks.forceRelease('order');
    const ticket = await (await other.locks.acquire('order')).detach({ for: '1h' });
    expect(former.held).toBe(true);
    const adopted = await locks.adopt(ticket);
    expect([former.held, adopted.held]).toEqual([false, true]);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(signal.reason.message).toContain('when this process adopted it with a ticket');
    await adopted.release();
  });

  it('lets its callers ask for the lock when the adoption has failed', async () => {
    const { ann, locks, runtime, ticket } = await open();
    await ann.locks.forceRelease('order');
    expect(await errorOf(locks.adopt(ticket))).toBeInstanceOf(LockLostError);
    await (await runtime.until(locks.acquire('order'), 10)).release();
  });

  it('reports the time since the call, and the owner of the ticket', async () => {
    const { ann, locks, backend, runtime, ticket } = await open();
    const heard: unknown[] = [];
    locks.on('acquired', ({ name, waited, ticketOwner }) => heard.push([name, waited, ticketOwner]));
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'adopt');
    const adopting = locks.adopt(ticket);
    await runtime.advance(70);
    answer.open();
    await adopting;
    const { clientId } = ann.locks.engine.services;
    const secret = JSON.parse(Buffer.from(ticket.split('.')[1], 'base64url').toString())[3];
    expect(heard).toEqual([['order', 70, ticketOwner(clientId, secret)]]);
  });

  it('stops asking when its service closes', async () => {
    const { locks, backend, runtime, ticket } = await open();
    backend.disturb(refused, 'adopt');
    const adopting = errorOf(locks.adopt(ticket));
    await runtime.advance(200);
    const sent = backend.count('adopt');
    void locks.drain();
    const error = await runtime.until(adopting);
    expect(error).toBeInstanceOf(LockAbortedError);
    expect(error.message).toBe('adopt(): the lock service is shutting down and grants no more locks');
    expect(backend.count('adopt')).toBeLessThanOrEqual(sent + 2);
  });

  it('may adopt a lock inside a body while its service waits for that body', async () => {
    const { locks, runtime, ticket } = await world.process({ shutdownTimeout: ms(10_000) }).then(async (process) => ({
      ...process,
      ticket: await (await (await world.process()).locks.acquire('order')).detach({ for: '1h' }),
    }));
    const begun = latch();
    let adopted: Lease | undefined;
    const body = locks.withLock('other', async () => {
      await begun.promise;
      adopted = await locks.adopt(ticket);
      expect(adopted.held).toBe(true);
      await adopted.release();
    });
    await runtime.settle();
    const drained = locks.drain();
    begun.open();
    await runtime.until(Promise.all([body, drained]));
    expect(adopted?.name).toBe('order');
    expect(await errorOf(locks.adopt(ticket))).toBeInstanceOf(LockAbortedError);
  });

  it('frees the lock again that it gets after its service has drained', async () => {
    const { ann, locks, backend, runtime, ticket } = await open();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'adopt');
    const adopting = errorOf(locks.adopt(ticket));
    await runtime.settle();
    await runtime.until(locks.drain());
    answer.open();
    expect(await adopting).toBeInstanceOf(LockAbortedError);
    expect(await ann.locks.isLocked('order')).toBe(false);
  });

  it('refuses a ticket for a name that was built from a missing value', async () => {
    const { locks, backend } = await world.process();
    const ticket = await (await locks.acquire('order:1234567890')).detach({ for: '1h' });
    const parts = readTicket(ticket, '');
    const forged = writeTicket({ ...parts, key: parts.key.replace('1234567890', 'undefined') });
    const before = backend.count();
    expect(await errorOf(locks.adopt(forged))).toBeInstanceOf(LockKeyError);
    expect(backend.count()).toBe(before);
    await (await locks.adopt(ticket)).release();
  });
});
