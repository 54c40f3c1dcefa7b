import { TICKET_LIFETIME } from '../../lock-backend.js';
import type { ScriptContext } from '../calls/script-context.js';
import { lastTicket } from '../lock-keys.js';
import { integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';

/** Numbers the owners that were woken and found the lock held by the same `holder`: 1, 2, … */
export async function takeTicket(key: string, holder: string, context: ScriptContext): Promise<number> {
  const { notes, connection } = context;
  const reply = await notes.call(scripts['take-ticket-1'], [lastTicket(key)], [holder, String(TICKET_LIFETIME)]);
  return integerOf(reply, connection.description);
}
