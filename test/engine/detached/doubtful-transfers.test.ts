import { BackendError } from '../../../lib/backends/lock-backend.js';
import { LockLostError, LockNotOwnedError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { leftovers, ms, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';
import { answerLost, type Disturbance } from '../../support/watched/watched-backend.js';

describe('a detached lock whose transfer is in doubt', () => {
  const world = openVirtualWorld();

  const detach = async () => {
    const [ann, bob] = [await world.process(), await world.process({ outageTimeout: ms(1_000) })];
    const ticket = await (await ann.locks.acquire('order')).detach({ for: '1h' });
    return { ann, bob, ticket };
  };

  it('is released when all answers to its adopter were lost', async () => {
    const { ann, bob, ticket } = await detach();
    bob.backend.disturb(answerLost, 'adopt');
    expect(await bob.runtime.until(errorOf(bob.locks.adopt(ticket)))).toBeInstanceOf(LockUnavailableError);
    expect(bob.backend.count('adopt')).toBeGreaterThan(1);
    await bob.runtime.advance(1_000);
    expect(await ann.locks.isLocked('order')).toBe(false);
    expect(leftovers(bob)).toEqual(NOTHING);
  });

  it('is released until no copy of the adoption can be executed any more', async () => {
    const { bob, ticket } = await detach();
    const { backend, runtime } = bob;
    const began = runtime.monotonic();
    const times = [8_000, 4_000];
    const lost: Disturbance = async () => {
      throw new BackendError('no answer in time', 'unavailable', 'unknown', { validUntil: times.shift() });
    };
    backend.disturb(lost, 'adopt');
    backend.disturb(async () => ({ released: false, listeners: 0, at: runtime.monotonic() - began }), 'release');
    expect(await runtime.until(errorOf(bob.locks.adopt(ticket)))).toBeInstanceOf(LockUnavailableError);
    expect(times).toEqual([]);
    await runtime.advance(5_000);
    const sent = backend.count('release');
    await runtime.advance(1_500);
    expect(backend.count('release')).toBeGreaterThan(sent);
    await runtime.advance(10_000);
    expect(leftovers(bob)).toEqual(NOTHING);
  });

  it('is not kept for its ticket when all answers to the process that detached it were lost', async () => {
    const ann = await world.process({ watchdogTimeout: ms(3_000) });
    const bob = await world.process();
    const lease = await ann.locks.acquire('order');
    ann.backend.disturb(answerLost, 'transfer');
    const error = await ann.runtime.until(errorOf(lease.detach({ for: '1h' })));
    expect(error).toBeInstanceOf(LockLostError);
    await ann.runtime.advance(1_000);
    expect(await bob.locks.isLocked('order')).toBe(false);
    expect(leftovers(ann)).toEqual(NOTHING);
  });

  it('is released until no copy of the transfer can be executed any more, when the transfer was given up', async () => {
    const ann = await world.process({ watchdogTimeout: ms(3_000) });
    const { backend, locks, runtime } = ann;
    const lease = await locks.acquire('order');
    const began = runtime.monotonic();
    const times = [8_000, 4_000];
    const lost: Disturbance = async () => {
      throw new BackendError('no answer in time', 'unavailable', 'unknown', { validUntil: times.shift() });
    };
    backend.disturb(lost, 'transfer');
    backend.disturb(async () => ({ released: false, listeners: 0, at: runtime.monotonic() - began }), 'release');
    expect(await runtime.until(errorOf(lease.detach({ for: '1h' })))).toBeInstanceOf(LockLostError);
    expect(times).toEqual([]);
    await runtime.advance(3_500);
    const sent = backend.count('release');
    await runtime.advance(1_500);
    expect(backend.count('release')).toBeGreaterThan(sent);
    await runtime.advance(10_000);
    expect(leftovers(ann)).toEqual(NOTHING);
  });

  it('is released once by either owner, on a backend that executes no copies later', async () => {
    const { backend, locks, runtime } = await world.process({ watchdogTimeout: ms(3_000) });
    const lease = await locks.acquire('order');
    backend.disturb(answerLost, 'transfer');
    const owners: string[] = [];
    backend.disturb(async (execute, request) => {
      owners.push((request as { owner: string }).owner);
      return execute();
    }, 'release');
    expect(await runtime.until(errorOf(lease.detach({ for: '1h' })))).toBeInstanceOf(LockLostError);
    await runtime.advance(5_000);
    expect(owners).toEqual([lease.owner, expect.any(String)]);
  });

  it('can be acquired again in a process that could not adopt it', async () => {
    const { bob, ticket } = await detach();
    const { locks, runtime } = bob;
    const adopted = await world.process().then((eve) => eve.locks.adopt(ticket));
    await expect(locks.adopt(ticket)).rejects.toThrow(LockNotOwnedError);
    const waiting = locks.acquire('order', { waitTime: '5s' });
    await runtime.advance(100);
    await adopted.release();
    await (await runtime.until(waiting)).release();
    await runtime.advance(5_000);
    expect(leftovers(bob)).toEqual(NOTHING);
  });
});
