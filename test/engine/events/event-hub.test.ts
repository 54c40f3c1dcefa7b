import { channel } from 'node:diagnostics_channel';
import { EventHub } from '../../../lib/engine/events/event-hub.js';
import { lockScopes } from '../../../lib/engine/scope/lock-scope.js';
import { RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('an event', () => {
  const lost = channel('test:lost');
  const setUp = () => {
    const logger = new RecordingLogger();
    return { logger, events: new EventHub(new VirtualRuntime(), logger, { lost }) };
  };

  it('need not be created unless somebody listens to it', () => {
    const { events } = setUp();
    expect(events.hasListener('busy')).toBe(false);
    const off = events.on('busy', () => {});
    expect(events.hasListener('busy')).toBe(true);
    expect(events.hasListener('renewed')).toBe(false);
    off();
    expect(events.hasListener('busy')).toBe(false);
  });

  it('is created for the subscribers of its channel, too', () => {
    const { events } = setUp();
    const seen: unknown[] = [];
    const subscriber = (message: unknown) => void seen.push(message);
    expect(events.hasListener('lost')).toBe(false);
    lost.subscribe(subscriber);
    try {
      expect(events.hasListener('lost')).toBe(true);
      const details = { name: 'order', owner: '1', error: new Error('lost') } as never;
      events.emit('lost', details);
      expect(seen).toEqual([details]);
    } finally {
      lost.unsubscribe(subscriber);
    }
    expect(events.hasListener('lost')).toBe(false);
  });

  it('without a listener is logged if it is an error, and has no effect otherwise', () => {
    const { events, logger } = setUp();
    events.emit('busy', { name: 'order' } as never);
    events.emit('error', new Error('first'));
    events.on('error', () => {})();
    events.emit('error', new Error('second'));
    expect(logger.errors).toEqual(['first', 'second']);
  });

  it('with an unknown name cannot be listened to', () => {
    const { events } = setUp();
    expect(() => events.on('aquired' as 'acquired', () => {})).toThrow(TypeError);
  });

  it('with a time needs the time of an acquisition from the first listener until the last one is removed', () => {
    const { events } = setUp();
    for (const event of ['acquired', 'released', 'detached'] as const) {
      expect(events.timed).toBe(false);
      const [one, other] = [events.on(event, () => {}), events.on(event, () => {})];
      one();
      expect(events.timed).toBe(true);
      other();
    }
    const others = (['renewed', 'busy', 'failed', 'error'] as const).map((event) => events.on(event, () => {}));
    expect(events.timed).toBe(false);
    for (const off of others) off();
  });

  it('about a failure is noted while somebody listens to it', () => {
    const { events } = setUp();
    const others = (['acquired', 'busy', 'error'] as const).map((event) => events.on(event, () => {}));
    expect(events.failures).toBe(false);
    const off = events.on('failed', () => {});
    expect(events.failures).toBe(true);
    off();
    expect(events.failures).toBe(false);
    for (const remove of others) remove();
  });

  it('reaches all listeners in order, but none that one of them adds, and not those that were removed', () => {
    const { events } = setUp();
    const heard: string[] = [];
    const offFirst = events.on('busy', () => {
      heard.push('first');
      events.on('busy', () => heard.push('added'));
      offFirst();
    });
    events.on('busy', () => heard.push('second'));
    events.emit('busy', {} as never);
    expect(heard).toEqual(['first', 'second']);
    events.emit('busy', {} as never);
    expect(heard.slice(2)).toEqual(['second', 'added']);
  });

  it('reaches its listeners outside of the scope in which it happens', () => {
    const { events } = setUp();
    const scopes: unknown[] = [];
    events.on('busy', () => scopes.push(lockScopes.getStore()));
    lockScopes.run({} as never, () => events.emit('busy', {} as never));
    expect(scopes).toEqual([undefined]);
  });

  it('reaches a listener and the subscribers of its channel', () => {
    const { events } = setUp();
    const seen: unknown[] = [];
    events.on('lost', () => seen.push('listener'));
    const subscriber = () => void seen.push('subscriber');
    lost.subscribe(subscriber);
    events.emit('lost', {} as never);
    lost.unsubscribe(subscriber);
    expect(seen.sort()).toEqual(['listener', 'subscriber']);
  });

  it('is logged, and reaches the other listeners, when a listener of it fails', async () => {
    const { events, logger } = setUp();
    const heard: string[] = [];
    events.on('busy', () => {
      throw new Error('thrown');
    });
    events.on('busy', (() => Promise.reject(new Error('rejected'))) as never);
    events.on('busy', () => heard.push('last'));
    events.emit('busy', {} as never);
    await Promise.resolve().then(() => Promise.resolve());
    expect(heard).toEqual(['last']);
    expect(logger.errors).toEqual([
      "A listener of 'busy' failed: Error: thrown",
      "A listener of 'busy' failed: Error: rejected",
    ]);
  });

  it('of type error follows work that fails and that nobody awaits', async () => {
    const { events } = setUp();
    const errors: Error[] = [];
    events.on('error', (error) => errors.push(error));
    const failure = new Error('no disk');
    for (const work of [Promise.resolve(1), undefined, Promise.reject(failure), Promise.reject('no text')])
      events.unawaited(work);
    await new Promise((resolve) => setImmediate(resolve));
    expect(errors).toEqual([failure, new Error('no text')]);
    expect(errors[0]).toBe(failure);
    expect(errors[1]).toBeInstanceOf(Error);
  });

  it('that does not exist is refused with the names of those that do', () => {
    const { events } = setUp();
    expect(() => events.on('aquired' as 'acquired', () => {})).toThrow(
      "There is no event 'aquired'; there are acquired, shared, released, detached, renewed, renewalFailed, lost, busy, failed, handoff, error",
    );
    for (const event of ['shared', 'renewalFailed', 'handoff'] as const) events.on(event, () => {})();
  });
});

describe('a warning about a subject', () => {
  it('is logged once, for a hundred subjects', () => {
    const logger = new RecordingLogger();
    const events = new EventHub(new VirtualRuntime(), logger);
    for (let n = 0; n < 101; n++) {
      events.warnOnce(`subject ${n}`, `first ${n}`);
      events.warnOnce(`subject ${n}`, `second ${n}`);
    }
    expect(logger.warnings).toEqual(Array.from({ length: 100 }, (_, n) => `first ${n}`));
  });
});
