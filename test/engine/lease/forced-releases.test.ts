import type { Removal } from '../../../lib/backends/lock-backend.js';
import { LockLostError } from '../../../lib/engine/errors.js';
import { ForcedReleases } from '../../../lib/engine/lease/forced-releases.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

describe('a message that a lock was released by force', () => {
  const world = openVirtualWorld();

  /** A process that holds a lock, and another one. The lock is removed without a message to the holder. */
  const open = async () => {
    const [holder, other] = [await world.process(), await world.process()];
    const lease = await holder.locks.acquire('order');
    const { services } = holder.locks.engine;
    const removal: Removal = { key: services.keyOf('order'), owners: [lease.owner] };
    const free = () => other.backend.forceRelease(removal.key);
    return { ...holder, lease, removal, services, free };
  };

  it('is believed when the backend confirms it', async () => {
    const { lease, removal, services, free, runtime } = await open();
    await free();
    services.forcedReleases.verify(removal);
    await runtime.settle();
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(lease.held).toBe(false);
  });

  it('is not believed when the backend still has the owner, or gives no answer', async () => {
    const { lease, removal, services, free, backend, runtime } = await open();
    services.forcedReleases.verify(removal);
    await runtime.settle();
    expect(lease.held).toBe(true);
    await free();
    backend.disturb(refused, 'inspect');
    services.forcedReleases.verify(removal);
    await runtime.settle();
    expect(lease.held).toBe(true);
    expect(backend.count('inspect')).toBe(2);
  });

  it('does not concern other locks, nor other owners', async () => {
    const { lease, removal, services, backend, runtime } = await open();
    services.forcedReleases.verify({ ...removal, owners: ['eve:1'] });
    services.forcedReleases.verify({ ...removal, key: `${removal.key}:2` });
    await runtime.settle();
    expect(backend.count('inspect')).toBe(0);
    expect(lease.held).toBe(true);
  });

  it('that comes while the backend is asked leads to another question, since the answer may be older', async () => {
    const { lease, removal, services, free, backend, runtime } = await open();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'inspect');
    services.forcedReleases.verify(removal);
    await runtime.settle();
    await free();
    for (let n = 0; n < 3; n++) services.forcedReleases.verify(removal);
    expect(backend.count('inspect')).toBe(1);
    backend.heal();
    answer.open();
    await runtime.settle();
    expect(backend.count('inspect')).toBe(2);
    expect(lease.held).toBe(false);
  });

  it('may have been missed before the process listened, so that what it holds is checked then', async () => {
    const { lease, free, backend, runtime } = await open();
    await free();
    await runtime.advance(900);
    expect([backend.listensToClient, lease.held]).toEqual([false, true]);
    await runtime.advance(200);
    expect([backend.listensToClient, lease.held]).toEqual([true, false]);
    expect(backend.count('renew')).toBe(0);
  });

  it('is not listened for by a process that is closed', async () => {
    const { services } = await open();
    let subscriptions = 0;
    const listenToClient = () => {
      subscriptions++;
      return { ready: Promise.resolve(), close: () => void subscriptions-- };
    };
    const backend = Object.assign(Object.create(services.backend), { listenToClient });
    const forced = new ForcedReleases(Object.assign(Object.create(services), { backend }));
    forced.listen();
    forced.listen();
    expect(subscriptions).toBe(1);
    forced.close();
    forced.listen();
    expect(subscriptions).toBe(0);
  });
});
