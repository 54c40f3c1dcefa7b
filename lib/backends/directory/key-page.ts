import type { KeyPage } from '../lock-directory.js';
import { globPattern } from './glob-pattern.js';

/** Before the key at which the next page begins, in a cursor. */
const AFTER = 'after:';

/**
 * One page of the keys that consist of `prefix` and a rest that matches `match`, in the order of the keys; undefined
 * for a wrong cursor.
 *
 * @publicApi
 */
export function keyPage(
  keys: readonly string[],
  prefix: string,
  match: string,
  cursor: string | undefined,
  count: number,
): KeyPage | undefined {
  if (cursor !== undefined && !cursor.startsWith(AFTER + prefix)) return undefined;
  const pattern = globPattern(match);
  const after = cursor?.slice(AFTER.length) ?? '';
  const matching = keys
    .filter((key) => key > after && key.startsWith(prefix) && pattern.test(key.slice(prefix.length)))
    .sort();
  const page = matching.slice(0, count);
  return { keys: page, cursor: matching.length > count ? AFTER + page[count - 1] : undefined };
}
