import { channel } from 'node:diagnostics_channel';
import { EventHub } from '../../../lib/engine/events/event-hub.js';
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
      const details = { name: 'order' } as never;
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
});
