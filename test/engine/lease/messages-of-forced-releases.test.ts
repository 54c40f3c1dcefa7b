import type { Removal } from '../../../lib/backends/lock-backend.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

describe('a message that a lock was released by force, which anybody can send,', () => {
  const world = openVirtualWorld();

  /** A process that holds a lock, and hears of forced releases. */
  const open = async () => {
    const [holder, other] = [await world.process(), await world.process()];
    const { backend, runtime, locks } = holder;
    let hear = (_removal: Removal) => {};
    const listen = backend.listenToClient;
    backend.listenToClient = (clientId, listener, ...more) => {
      hear = listener;
      return listen.call(backend, clientId, listener, ...more);
    };
    const lease = await locks.acquire('order');
    await runtime.advance(2_000);
    const removal: Removal = { key: locks.engine.keyOf('order'), owners: [lease.owner] };
    const asked = backend.count('inspect');
    const free = () => other.backend.forceRelease(removal.key);
    return { ...holder, lease, removal, hear, free, questions: () => backend.count('inspect') - asked };
  };

  it('is believed only when the backend confirms it', async () => {
    const { lease, removal, hear, free, backend, runtime, questions } = await open();
    hear(removal);
    await runtime.settle();
    expect([lease.held, questions()]).toEqual([true, 1]);
    backend.disturb(refused, 'inspect');
    await free();
    hear(removal);
    await runtime.settle();
    expect(lease.held).toBe(true);
    backend.heal();
    hear(removal);
    await runtime.settle();
    expect(lease.held).toBe(false);
  });

  it('does not concern other locks, nor other owners', async () => {
    const { lease, removal, hear, runtime, questions } = await open();
    hear({ ...removal, owners: ['eve:1'] });
    hear({ ...removal, key: `${removal.key}:2` });
    await runtime.settle();
    expect([lease.held, questions()]).toEqual([true, 0]);
  });

  it('leads to one more question if it comes while the backend is asked, since the answer may be older', async () => {
    const { lease, removal, hear, free, backend, runtime, questions } = await open();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'inspect');
    hear(removal);
    await runtime.settle();
    await free();
    for (let n = 0; n < 3; n++) hear(removal);
    expect(questions()).toBe(1);
    backend.heal();
    answer.open();
    await runtime.settle();
    expect([questions(), lease.held]).toEqual([2, false]);
  });
});
