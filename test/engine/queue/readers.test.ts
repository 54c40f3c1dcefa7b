import { setTimeout as sleep } from 'node:timers/promises';
import { openVirtualWorld, openWorld } from '../../support/lock-world.js';
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

describe('readers that wait while another process writes', () => {
  const world = openWorld('Redis');

  it('ask once in a while, although one of them had tried once', async () => {
    const [writer, reader] = [await world.process(), await world.process()];
    const read = () => reader.locks.acquire('page', { type: 'read' });
    const before = await writer.locks.acquire('page', { type: 'write' });
    const waited = read();
    await sleep(100);
    await before.release();
    await (await waited).release(); // its process listens on for a second
    const writing = await writer.locks.acquire('page', { type: 'write' });
    const asked = reader.backend.count('acquire');
    const once = reader.locks.tryAcquire('page', { type: 'read' });
    const reading = [1, 2, 3, 4, 5].map(read);
    expect(await once).toBeNull();
    await sleep(300);
    const requests = reader.backend.count('acquire') - asked;
    await writing.release();
    await Promise.all(reading.map(async (lease) => (await lease).release()));
    expect(requests).toBeLessThan(20);
  });
});
