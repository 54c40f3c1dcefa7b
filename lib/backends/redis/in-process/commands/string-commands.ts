import type { Keyspace } from '../keyspace.js';
import { redisError } from '../redis-error.js';
import { type Command, onKey, optionOf, toInteger } from './command.js';

const LARGEST = 2n ** 63n - 1n;

export const STRING_COMMANDS: Readonly<Record<string, Command>> = {
  GET: onKey(1, 1, ({ keys }, key) => keys.find(key as string, 'string') ?? null),
  SET: onKey(2, 4, ({ keys, now }, key, value, option, time) => {
    if (option === undefined) return keys.setString(key as string, value as string);
    optionOf('SET', option, ['PX']);
    if (time === undefined) throw redisError('ERR syntax error');
    const lifetime = toInteger(time);
    if (lifetime <= 0) throw redisError("ERR invalid expire time in 'set' command");
    return keys.setString(key as string, value as string, now() + lifetime);
  }),
  GETSET: onKey(2, 2, ({ keys }, key, value) => {
    const former = keys.find(key as string, 'string') ?? null;
    keys.setString(key as string, value as string);
    return former;
  }),
  INCRBY: onKey(2, 2, ({ keys }, key, by) => add(keys, key as string, BigInt(toInteger(by as string)))),
  DECRBY: onKey(2, 2, ({ keys }, key, by) => add(keys, key as string, -BigInt(toInteger(by as string)))),
};

function add(keys: Keyspace, key: string, by: bigint): number {
  const former = keys.find(key, 'string') ?? '0';
  toInteger(former);
  const sum = BigInt(former) + by;
  if (sum > LARGEST || sum < -LARGEST - 1n) throw redisError('ERR increment or decrement would overflow');
  keys.replaceString(key, String(sum));
  return Number(sum);
}
