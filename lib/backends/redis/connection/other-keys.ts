/** With fewer keys than this, a database is not looked at. */
const MANY = 1_000;
/** How many of its keys are looked at. */
const SAMPLE = 200;

/** A node of the database, which answers one command. */
type Ask = (name: string, args: readonly string[]) => Promise<unknown>;

/**
 * What a warning says about a database that others use as well; undefined if they do not, or if the user may not look.
 * It reads a sample of the keys, by one SCAN.
 *
 * @param info the reply to INFO
 */
export async function otherKeysIn(
  info: string,
  database: number,
  keyPrefix: string,
  ask: Ask,
): Promise<string | undefined> {
  const count = Number(new RegExp(`^db${database}:keys=(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  if (count < MANY) return undefined;
  const page: unknown = await ask('scan', ['0', 'COUNT', String(SAMPLE)]).catch(() => undefined);
  const keys: unknown = Array.isArray(page) ? page[1] : undefined;
  if (!Array.isArray(keys) || keys.length === 0) return undefined;
  const isOurs = (key: unknown) =>
    typeof key === 'string' && (key.startsWith(keyPrefix) || key.startsWith(`{${keyPrefix}`) || OURS.test(key));
  const others = keys.filter((key) => !isOurs(key)).length;
  if (others * 2 < keys.length) return undefined;
  return `database ${database} has ${count} keys, and most of them are not locks. A FLUSHDB or FLUSHALL for the others also removes held locks: a second caller then gets the lock until its holder notices at the next renewal, up to a third of a lease later`;
}

export const OTHER_KEYS_REMEDY = 'give locks a database or, better, a server that nobody flushes';

const OURS = /^(?:nestjs_redis_lock_|redisson_)/;
