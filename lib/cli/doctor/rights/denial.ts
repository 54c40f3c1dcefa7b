import { errorCode, messageOf } from '../../../backends/redis/connection/redis-errors.js';

/**
 * What the user may not do or use; undefined: there is no error, or it was not the rights that the command failed for.
 *
 * @throws the error, where it is no answer of the server: then nothing is known
 */
export function denial(error: unknown): 'command' | 'key' | 'channel' | undefined {
  if (error === undefined || error === null) return undefined;
  if ((error as Error).name !== 'ReplyError') throw error;
  const message = messageOf(error);
  if (errorCode(message) !== 'NOPERM') return undefined;
  const [, what] = /access (?:a|one of the) (key|channel)s?\b/i.exec(message) ?? [];
  return (what as 'key' | 'channel' | undefined) ?? 'command';
}
