import { errorCode, messageOf } from '../../../backends/redis/connection/redis-errors.js';

/** What the user may not do or use; undefined: it was not the rights that the command failed for. */
export function denial(error: unknown): 'command' | 'key' | 'channel' | undefined {
  const message = messageOf(error);
  if (errorCode(message) !== 'NOPERM') return undefined;
  const [, what] = /access (?:a|one of the) (key|channel)s?\b/i.exec(message) ?? [];
  return (what as 'key' | 'channel' | undefined) ?? 'command';
}
