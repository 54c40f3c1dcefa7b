import { type AdoptReply, type AdoptRequest, isReadWrite } from '../../lock-backend.js';
import type { ScriptContext } from '../calls/script-context.js';
import { arrayOf, integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { copyOf } from './acquire-reply.js';
import { publishCommand } from './publish-command.js';
import { tokenSource } from './token-source.js';

/** Takes over a detached lock from the owner of its ticket. */
export async function adopt(request: AdoptRequest, context: ScriptContext): Promise<AdoptReply> {
  const { connection, highestToken, single, replicaCheck } = context;
  const { key, type, clientId, secret, to, leaseTime } = request;
  const publish = await publishCommand(context, key);
  const { reply, call } = await single.callInTime(
    scripts['adopt-2'],
    [key, tokenSource(connection, key, type)],
    [highestToken.seen, String(leaseTime), clientId, secret, to, isReadWrite(type) ? ':write' : '', publish],
  );
  const server = connection.description;
  const parts = arrayOf(reply, server);
  if (parts.length === 1) return { acquired: false, holder: String(parts[0]) || undefined };
  const [token, reserved] = parts.map((part) => integerOf(part, server));
  await replicaCheck?.confirm(call, [{ key, type, owner: to }]);
  return { ...highestToken.acquired(token, reserved), ...copyOf(call) };
}
