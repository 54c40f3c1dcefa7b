import { BackendError } from '../../lock-backend.js';
import { isCluster } from '../client/client.js';
import type { ClientSource } from '../client/client-source.js';
import { unexpected } from '../reply-shape.js';
import { messageOf, withoutSecrets } from './redis-errors.js';
import { ScriptCommand } from './script-command.js';

/**
 * Checks that the server has the database of a client of ours: ioredis reports one that is missing only by a line in the log, and goes on
 * in database 0.
 *
 * @throws BackendError when it cannot be used
 */
export async function checkDatabase(
  { client, owned, description }: ClientSource,
  send: (command: ScriptCommand) => Promise<unknown>,
): Promise<void> {
  const db = isCluster(client) ? 0 : client.options.db;
  if (!owned || !db) return;
  try {
    const reply = await send(new ScriptCommand('select', [String(db)]));
    if (reply !== 'OK') throw unexpected(reply, description);
  } catch (error) {
    const message = messageOf(error);
    if (!/^(ERR|NOPERM)\b/.test(message)) throw error;
    const remedy = /^NOPERM/.test(message)
      ? 'Give the user +select, see docs/permissions.md'
      : "Name a database that exists in the connection, or raise 'databases' in redis.conf";
    throw new BackendError(
      `${description}: database ${db} cannot be used (${message}). ${remedy}`,
      'denied',
      'refused',
      { cause: withoutSecrets(error) },
    );
  }
}
