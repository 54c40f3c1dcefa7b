import type { SortedSet } from '../keyspace.js';
import { numberAsArgument, numberOf } from '../lua-number.js';
import { NotInProcessError, type Reply, redisError } from '../redis-error.js';
import { type Command, onKey, optionOf, slice, toInteger } from './command.js';

export const SORTED_SET_COMMANDS: Readonly<Record<string, Command>> = {
  ZADD: onKey(3, Infinity, ({ keys }, key, ...rest) => {
    const options = new Set<string>();
    while (rest.length > 0 && Number.isNaN(Number.parseFloat(rest[0] as string)) && !isInfinite(rest[0] as string))
      options.add(optionOf('ZADD', rest.shift() as string, ['XX', 'LT', 'GT', 'NX']));
    if (rest.length === 0 || rest.length % 2 === 1) throw redisError('ERR syntax error');
    const scores = rest.filter((_text, n) => n % 2 === 0).map(toScore);
    const existing = keys.find(key as string, 'zset');
    if (options.has('XX') && existing === undefined) return 0;
    const set = existing ?? keys.findOrCreate(key as string, 'zset');
    const before = set.size;
    for (const [n, score] of scores.entries()) {
      const member = rest[2 * n + 1] as string;
      if (mayWrite(options, set.get(member), score)) set.set(member, score);
    }
    keys.deleteIfEmpty(key as string, set.size);
    return set.size - before;
  }),
  ZREM: onKey(2, Infinity, ({ keys }, key, ...members) => keys.remove(key as string, 'zset', members)),
  ZSCORE: onKey(2, 2, ({ keys }, key, member) => {
    const score = keys.find(key as string, 'zset')?.get(member as string);
    return score === undefined ? null : numberAsArgument(score);
  }),
  ZCARD: onKey(1, 1, ({ keys }, key) => keys.find(key as string, 'zset')?.size ?? 0),
  ZCOUNT: onKey(3, 3, ({ keys }, key, from, to) => {
    const isBetween = between(from as string, to as string);
    return [...(keys.find(key as string, 'zset')?.values() ?? [])].filter(isBetween).length;
  }),
  ZRANGE: onKey(3, Infinity, ({ keys }, key, from, to, ...options) =>
    range(keys.find(key as string, 'zset'), from as string, to as string, options),
  ),
  ZRANGEBYSCORE: onKey(3, Infinity, ({ keys }, key, from, to, ...options) =>
    range(keys.find(key as string, 'zset'), from as string, to as string, ['BYSCORE', ...options]),
  ),
  ZREMRANGEBYSCORE: onKey(3, 3, ({ keys }, key, from, to) => {
    const rows = rowsBetween(keys.find(key as string, 'zset'), from as string, to as string);
    const members = rows.map(([member]) => member);
    return keys.remove(key as string, 'zset', members);
  }),
};

function mayWrite(options: ReadonlySet<string>, former: number | undefined, score: number): boolean {
  if (former === undefined) return !options.has('XX');
  if (options.has('NX')) return false;
  return !(options.has('LT') && score >= former) && !(options.has('GT') && score <= former);
}

function range(set: SortedSet | undefined, from: string, to: string, options: string[]): Reply {
  let byScore = false;
  let withScores = false;
  let limit: readonly [number, number] = [0, -1];
  for (let n = 0; n < options.length; n++) {
    const option = optionOf('ZRANGE', options[n] as string, ['BYSCORE', 'WITHSCORES', 'LIMIT']);
    if (option === 'BYSCORE') byScore = true;
    else if (option === 'WITHSCORES') withScores = true;
    else limit = [toInteger(options[++n] ?? ''), toInteger(options[++n] ?? '')];
  }
  if (!byScore && limit[1] !== -1) throw new NotInProcessError('ZRANGE with LIMIT and without BYSCORE');
  const rows = byScore ? limited(rowsBetween(set, from, to), limit) : slice(sorted(set), from, to);
  return rows.flatMap(([member, score]) => (withScores ? [member, numberAsArgument(score)] : [member]));
}

function rowsBetween(set: SortedSet | undefined, from: string, to: string) {
  const isBetween = between(from, to);
  return sorted(set).filter(([, score]) => isBetween(score));
}

function limited<T>(rows: readonly T[], [offset, count]: readonly [number, number]): readonly T[] {
  return rows.slice(offset, count < 0 ? undefined : offset + count);
}

/** By score, then by the bytes of the member. */
function sorted(set: SortedSet | undefined): readonly (readonly [string, number])[] {
  return [...(set ?? [])].sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : 1));
}

function between(from: string, to: string): (score: number) => boolean {
  const [low, high] = [limitOf(from), limitOf(to)];
  return (score) =>
    (low.open ? score > low.score : score >= low.score) && (high.open ? score < high.score : score <= high.score);
}

function limitOf(text: string): { readonly open: boolean; readonly score: number } {
  const open = text.startsWith('(');
  const score = numberOf(open ? text.slice(1) : text);
  if (score === undefined || Number.isNaN(score)) throw redisError('ERR min or max is not a float');
  return { open, score };
}

function isInfinite(text: string): boolean {
  return /^[-+]?inf/i.test(text);
}

function toScore(text: string): number {
  const score = numberOf(text);
  if (score === undefined || Number.isNaN(score) || /^\s|\s$/.test(text))
    throw redisError('ERR value is not a valid float');
  return score;
}
