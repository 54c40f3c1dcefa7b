import {
  type HeldPermit,
  MOST_PERMITS_SHOWN,
  SHOWN_ID_DIGITS,
  type SynchronizerNote,
  type SynchronizerState,
  synchronizerState,
} from '../../../synchronizer-state.js';
import { counterNote, permitLeases } from '../../lock-keys.js';
import { arrayOf } from '../../reply-shape.js';
import type { SynchronizerCalls } from './synchronizer-calls.js';

const NOTED_TYPES: readonly SynchronizerNote['type'][] = [
  'semaphore',
  'permit-expirable-semaphore',
  'count-down-latch',
];

/** The state of a semaphore or latch; undefined: there is none. */
export async function inspectCount(calls: SynchronizerCalls, key: string): Promise<SynchronizerState | undefined> {
  const keys = [key, permitLeases(key), counterNote(key)] as const;
  const reply = await calls.run('inspect-count-3', keys, [MOST_PERMITS_SHOWN, SHOWN_ID_DIGITS / 2]);
  if (reply === null || reply === undefined) return undefined;
  const [count, type, total, acquired, entries] = arrayOf(reply, calls.server);
  const held = arrayOf(entries, calls.server);
  const permits: HeldPermit[] = [];
  for (let n = 0; n < held.length; n += 2) permits.push({ id: String(held[n]), remaining: calls.integer(held[n + 1]) });
  return synchronizerState(noteOf(String(type), String(total)), calls.integer(count), calls.integer(acquired), permits);
}

/** Anybody may have written the note. */
function noteOf(type: string, total: string): SynchronizerNote | undefined {
  const known = NOTED_TYPES.find((one) => one === type);
  return known && { type: known, total: /^\d{1,10}$/.test(total) ? Number(total) : undefined };
}
