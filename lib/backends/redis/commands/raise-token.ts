import type { HeldType } from '../../lock-backend.js';
import type { ScriptContext } from '../calls/script-context.js';
import { integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { tokenSource } from './token-source.js';

/** Makes the tokens of a lock continue above `token`. */
export async function raiseToken(key: string, type: HeldType, token: number, context: ScriptContext): Promise<void> {
  const { connection, highestToken, single } = context;
  const reply = await single.call(scripts['raise-token-1'], [tokenSource(connection, key, type)], [String(token)]);
  integerOf(reply, connection.description);
  highestToken.acquired(token, 0);
}
