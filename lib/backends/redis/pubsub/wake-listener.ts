import type { Wake } from '../../lock-backend.js';
import type { ChannelListener } from './topic.js';

/**
 * Turns messages into wake-ups of waiters.
 *
 * @param ownerOf the owner that a message on this channel is for; by default, it is for any waiter
 */
export function wakeListener(listener: (wake: Wake) => void, ownerOf?: (channel: string) => string): ChannelListener {
  return {
    message: (channel) =>
      listener(ownerOf === undefined ? { kind: 'message' } : { kind: 'message', owner: ownerOf(channel) }),
    resync: () => listener({ kind: 'resync' }),
  };
}
