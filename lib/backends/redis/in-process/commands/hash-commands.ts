import { redisError } from '../redis-error.js';
import { type Command, onKey } from './command.js';

export const HASH_COMMANDS: Readonly<Record<string, Command>> = {
  HSET: onKey(3, Infinity, ({ keys }, key, ...pairs) => {
    if (pairs.length % 2 === 1) throw redisError("ERR wrong number of arguments for 'hset' command");
    const hash = keys.findOrCreate(key as string, 'hash');
    const before = hash.size;
    for (let n = 0; n < pairs.length; n += 2) hash.set(pairs[n] as string, pairs[n + 1] as string);
    return hash.size - before;
  }),
  HSETNX: onKey(3, 3, ({ keys }, key, field, value) => {
    const hash = keys.findOrCreate(key as string, 'hash');
    if (hash.has(field as string)) return 0;
    hash.set(field as string, value as string);
    return 1;
  }),
  HGET: onKey(2, 2, ({ keys }, key, field) => keys.find(key as string, 'hash')?.get(field as string) ?? null),
  HMGET: onKey(2, Infinity, ({ keys }, key, ...fields) => {
    const hash = keys.find(key as string, 'hash');
    return fields.map((field) => hash?.get(field) ?? null);
  }),
  HGETALL: onKey(1, 1, ({ keys }, key) => [...(keys.find(key as string, 'hash') ?? [])].flat()),
  HKEYS: onKey(1, 1, ({ keys }, key) => [...(keys.find(key as string, 'hash')?.keys() ?? [])]),
  HLEN: onKey(1, 1, ({ keys }, key) => keys.find(key as string, 'hash')?.size ?? 0),
  HEXISTS: onKey(2, 2, ({ keys }, key, field) => Number(keys.find(key as string, 'hash')?.has(field as string) ?? 0)),
  HSTRLEN: onKey(2, 2, ({ keys }, key, field) => keys.find(key as string, 'hash')?.get(field as string)?.length ?? 0),
  HDEL: onKey(2, Infinity, ({ keys }, key, ...fields) => keys.remove(key as string, 'hash', fields)),
};
