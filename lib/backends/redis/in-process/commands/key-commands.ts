import { globPattern } from '../../../directory/glob-pattern.js';
import { slotOf } from '../../hash-slot.js';
import { redisError, StatusReply } from '../redis-error.js';
import { type Command, onKey, onKeys, optionOf, toInteger, withoutKeys } from './command.js';

/** 64 bits, in ms. */
const LATEST = 2 ** 63;
const FEWEST_SCANNED = 10;

export const KEY_COMMANDS: Readonly<Record<string, Command>> = {
  TYPE: onKey(1, 1, ({ keys }, key) => new StatusReply(keys.typeOf(key as string) ?? 'none')),
  EXISTS: onKeys(({ keys }, ...names) => names.filter((key) => keys.has(key)).length),
  DEL: onKeys(({ keys }, ...names) => names.filter((key) => keys.delete(key)).length),
  PTTL: onKey(1, 1, ({ keys, now }, key) => {
    const end = keys.endOf(key as string);
    if (end === undefined) return -2;
    return end === null ? -1 : end - now();
  }),
  PEXPIRE: onKey(2, 3, ({ keys, now }, key, time, flag) => {
    const longer = flag !== undefined && optionOf('PEXPIRE', flag, ['GT']) === 'GT';
    const end = now() + toInteger(time as string);
    if (Math.abs(end) >= LATEST) throw redisError("ERR invalid expire time in 'pexpire' command");
    const former = keys.endOf(key as string);
    if (former === undefined || (longer && (former === null || former >= end))) return 0;
    keys.expireAt(key as string, end);
    return 1;
  }),
  SCAN: withoutKeys(1, Infinity, ({ keys }, cursor, ...options) => {
    let count = FEWEST_SCANNED;
    let isWanted = (_key: string) => true;
    for (let n = 0; n < options.length; n += 2) {
      const value = options[n + 1] ?? '';
      const option = optionOf('SCAN', options[n] as string, ['MATCH', 'COUNT', 'TYPE']);
      const isWantedBefore = isWanted;
      if (option === 'COUNT') count = toInteger(value);
      else if (option === 'TYPE') isWanted = (key) => isWantedBefore(key) && keys.typeOf(key) === value.toLowerCase();
      else {
        const pattern = globPattern(value);
        isWanted = (key) => isWantedBefore(key) && pattern.test(key);
      }
    }
    const [next, scanned] = scan(keys.keys(), toInteger(cursor as string), count);
    return [String(next), scanned.filter(isWanted)];
  }),
};

/** The keys of the first slots from this one on, at least `count`, and the slot to continue with; 0: that were all. */
function scan(keys: readonly string[], from: number, count: number): [next: number, keys: string[]] {
  const slots = keys.map((key) => [slotOf(key), key] as const).filter(([slot]) => slot >= from);
  slots.sort(([one], [other]) => one - other);
  const last = slots[count - 1]?.[0] ?? Number.POSITIVE_INFINITY;
  const scanned = slots.filter(([slot]) => slot <= last);
  return [scanned.length < slots.length ? last + 1 : 0, scanned.map(([, key]) => key)];
}
