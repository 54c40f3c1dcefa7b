import type { BlockingBackend } from '../../../lib/backends/lock-backend.js';
import { openVirtualWorld } from '../../support/lock-world.js';

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
    const { events } = locks.engine.services;
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
});
