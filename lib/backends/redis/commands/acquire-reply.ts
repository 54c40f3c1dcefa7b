import type { Busy } from '../../lock-backend.js';
import type { ScriptCall } from '../connection/script-call.js';
import { integerOf } from '../reply-shape.js';

/** The value of `remaining` when the holder's lease has no end. */
const WITHOUT_LIMIT = -1;

/**
 * The reply of a script about a busy lock: the time left of the holder's lease in ms, as in PTTL, the holder, and
 * {@link Busy.heldAs}.
 */
export function busyReply(ttl: unknown, holder: unknown, server: string, heldAs?: unknown): Busy {
  const remaining = remainingTime(integerOf(ttl, server));
  const busy = { acquired: false, remaining, holder: String(holder) || undefined } as const;
  return isHeldAs(heldAs) ? { ...busy, heldAs } : busy;
}

/** Whether this part of a reply is {@link Busy.heldAs}. */
export function isHeldAs(part: unknown): part is NonNullable<Busy['heldAs']> {
  return part === 'reentrant' || part === 'write';
}

/** The remaining time of a lease: at least 1 ms, so that callers do not ask again before it has ended. */
export function remainingTime(ttl: number): number {
  return ttl < 0 ? WITHOUT_LIMIT : Math.max(1, Math.ceil(ttl));
}

/** The part of a reply that concerns a call that was sent twice. */
export function copyOf({ resent, validUntil }: ScriptCall): { readonly validUntil?: number } {
  return resent ? { validUntil } : {};
}
