import { NotInProcessError, redisError, StatusReply } from '../redis-error.js';
import { type Command, matches, onKey, onKeys, optionOf, toInteger, withoutKeys } from './command.js';

/** 64 bits, in ms. */
const LATEST = 2 ** 63;

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
  SCAN: withoutKeys(1, Infinity, (server, cursor, ...options) => {
    if (cursor !== '0') throw new NotInProcessError(`the cursor ${cursor}: it answers SCAN in one page`);
    let keys = server.keys.keys();
    for (let n = 0; n < options.length; n += 2) {
      const value = options[n + 1] ?? '';
      const option = optionOf('SCAN', options[n] as string, ['MATCH', 'COUNT', 'TYPE']);
      if (option === 'COUNT') toInteger(value);
      else if (option === 'TYPE') keys = keys.filter((key) => server.keys.typeOf(key) === value.toLowerCase());
      else {
        const pattern = matches(value);
        keys = keys.filter((key) => pattern.test(key));
      }
    }
    return ['0', keys];
  }),
};
