import type { LockState } from '../../lock-backend.js';
import { keysOf } from '../calls/item-answer.js';
import type { ScriptContext } from '../calls/script-context.js';
import { arrayOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { remainingTime } from './acquire-reply.js';
import { FAIR_KEYS, TOKEN_COUNTER } from './lock-type-table.js';

/** The state of a lock of any type. */
export async function inspect(key: string, { single, connection }: ScriptContext): Promise<LockState> {
  const keys = keysOf([...FAIR_KEYS, TOKEN_COUNTER], [{ key }]);
  const reply = await single.call(scripts['inspect-5'], keys, []);
  const [mode, held, queue, token] = arrayOf(reply, connection.description) as [string, unknown[], string[], unknown];
  const owners: LockState['owners'][number][] = [];
  for (let n = 0; n < held.length; n += 2) {
    owners.push({ owner: String(held[n]), remaining: remainingTime(Number(held[n + 1])) });
  }
  return {
    mode: owners.length === 0 ? 'free' : mode === 'read' || mode === 'write' ? mode : 'exclusive',
    owners,
    queue,
    token: token === undefined || token === null ? undefined : Number(token),
  };
}
