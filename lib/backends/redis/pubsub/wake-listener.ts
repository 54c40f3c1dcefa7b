import type { Wake } from '../../lock-backend.js';
import type { ChannelListener } from './topic.js';

/**
 * Turns messages into wake-ups of waiters.
 *
 * @param ownerOf returns the owner for which a message on this channel is meant; by default, it is meant for any waiter
 */
export function wakeListener(listener: (wake: Wake) => void, ownerOf?: (channel: string) => string): ChannelListener {
  return {
    message: (channel) =>
      listener(ownerOf === undefined ? { kind: 'message' } : { kind: 'message', owner: ownerOf(channel) }),
    resync: () => listener({ kind: 'resync' }),
  };
}

/** Turns the messages of scripts/includes/line/serve-line.lua into wake-ups of a client that waits in line. */
export function lineListener(listener: (wake: Wake) => void): ChannelListener {
  return {
    message: (_, text) => {
      const [owner, state] = text.split(' ');
      const lock = state === 'granted' || state === 'free' ? state : undefined;
      listener({ kind: 'message', owner, lock });
    },
    resync: () => listener({ kind: 'resync' }),
  };
}
