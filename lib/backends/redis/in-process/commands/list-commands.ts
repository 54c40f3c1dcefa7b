import { NotInProcessError } from '../redis-error.js';
import { type Command, onKey, slice, toInteger } from './command.js';

export const LIST_COMMANDS: Readonly<Record<string, Command>> = {
  RPUSH: onKey(2, Infinity, ({ keys }, key, ...values) => keys.findOrCreate(key as string, 'list').push(...values)),
  LLEN: onKey(1, 1, ({ keys }, key) => keys.find(key as string, 'list')?.length ?? 0),
  LINDEX: onKey(
    2,
    2,
    ({ keys }, key, index) => keys.find(key as string, 'list')?.at(toInteger(index as string)) ?? null,
  ),
  LRANGE: onKey(3, 3, ({ keys }, key, from, to) =>
    slice(keys.find(key as string, 'list') ?? [], from as string, to as string),
  ),
  LREM: onKey(3, 3, ({ keys }, key, count, value) => {
    if (count !== '1') throw new NotInProcessError(`LREM with the count ${count}`);
    const list = keys.find(key as string, 'list');
    const at = list?.indexOf(value as string) ?? -1;
    if (list === undefined || at < 0) return 0;
    list.splice(at, 1);
    keys.deleteIfEmpty(key as string, list.length);
    return 1;
  }),
};
