import { openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';
import { answerAfter } from '../../support/watched/watched-backend.js';

describe('a reader that comes while its process acquires the read lock with others', () => {
  const world = openVirtualWorld();

  it.each(['together', 'one by one'])('reads beside the several locks, which are acquired %s', async (how) => {
    const { locks, backend, runtime } = await world.process();
    if (how === 'one by one') backend.canAcquireTogether = () => false;
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire', 'acquireAll');
    const several = locks.acquire(['cover', 'page'], { type: 'read' });
    await runtime.settle();
    backend.heal();
    const reading = ['cover', 'page'].map((name) => locks.acquire(name, { type: 'read', waitTime: '1s' }));
    answer.open();
    const all = await several;
    const readers = await runtime.until(Promise.all(reading));
    expect([all.held, ...readers.map(({ held }) => held)]).toEqual([true, true, true]);
    await Promise.all([all, ...readers].map((lease) => lease.release()));
  });
});
