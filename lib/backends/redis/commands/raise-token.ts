import type { LockType } from '../../lock-backend.js';
import { integerOf } from '../calls/reply-shape.js';
import { clockOf, type ScriptContext } from '../calls/script-context.js';
import { fencingToken } from '../lock-keys.js';
import { scripts } from '../scripts.js';

/** Lets the tokens of a lock go on above `token`. */
export async function raiseToken(key: string, type: LockType, token: number, context: ScriptContext): Promise<void> {
  const { connection, tokens, single } = context;
  const clock = type === 'fenced' ? fencingToken(key) : clockOf(connection, key);
  integerOf(await single.call(scripts['raise-token-1'], [clock], [String(token)]), connection.description);
  tokens.acquired(token, 0);
}
