import type { BlockingBackend } from '../../../lib/backends/lock-backend.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';
import { answerAfter } from '../../support/watched/watched-backend.js';

describe('a lock that is given back while another caller of its process waits', () => {
  const world = openVirtualWorld();

  it('is released to the queue of a backend that has one', async () => {
    const { locks, backend, runtime } = await world.process();
    const blocking: BlockingBackend = {
      refusal: () => undefined,
      acquire: (request) => backend.acquire(request),
      stop: () => {},
    };
    Object.assign(backend, { blocking });
    const first = await locks.acquire('order');
    const waiting = locks.acquire('order');
    await first.release();
    const second = await runtime.until(waiting);
    expect(backend.commands).toEqual(['acquire', 'release', 'acquire']);
    await second.release();
  });

  it('makes no event that nobody listens to', async () => {
    const { locks, backend, runtime } = await world.process();
    const { events } = locks.engine.context;
    const emitted: string[] = [];
    const emit = events.emit.bind(events);
    events.emit = (event, details) => {
      emitted.push(event);
      emit(event, details);
    };
    const pass = async () => {
      const first = await locks.acquire('order');
      const waiting = locks.acquire('order');
      await first.release();
      await (await runtime.until(waiting)).release();
    };
    await pass();
    expect(backend.count('transfer')).toBe(1);
    expect(emitted).not.toContain('handoff');
    locks.on('handoff', () => {});
    await pass();
    expect(emitted).toContain('handoff');
  });

  it('is refused at once to a caller of several locks that tries once', async () => {
    const { locks, backend, runtime } = await world.process();
    const reading = await locks.acquire('page', { type: 'read' });
    const writing = locks.acquire('page', { type: 'write' });
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'release');
    const released = reading.release();
    await runtime.settle();
    let outcome: unknown = 'none yet';
    void locks.tryAcquire(['cover', 'page'], { type: 'write' }).then((lease) => {
      outcome = lease;
    });
    await runtime.settle();
    expect(outcome).toBeNull();
    answer.open();
    await released;
    await (await runtime.until(writing)).release();
  });
});
