import type { Grant, Wake } from '../../lock-backend.js';
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

/** Turns the messages of scripts/includes/line/tell-line.lua and grant-to.lua into wake-ups of a client that waits in line. */
export function lineListener(listener: (wake: Wake) => void): ChannelListener {
  return {
    message: (_, text) => {
      const [owner, state, ...terms] = text.split(' ');
      const lock = state === 'granted' || state === 'free' ? state : undefined;
      const grant = lock === 'granted' ? grantOf(terms) : undefined;
      listener({ kind: 'message', owner, lock, ...(grant && { grant }) });
    },
    resync: () => listener({ kind: 'resync' }),
  };
}

/**
 * What a message says about the grant: see scripts/includes/line/grant-to.lua. Undefined if that is not enough, as in the
 * messages of earlier versions, which do not say the lease.
 */
function grantOf([nonce, ...numbers]: readonly string[]): Grant | undefined {
  const [token, reserved, after, lease] = numbers.map(Number);
  const isWhole = [token, reserved, after, lease].every((number) => Number.isSafeInteger(number) && number >= 0);
  return isWhole ? { nonce, token, reserved, after, lease } : undefined;
}
