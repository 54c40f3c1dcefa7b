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
