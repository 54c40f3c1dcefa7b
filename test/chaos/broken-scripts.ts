// @ts-expect-error: JavaScript without types
import { translateScripts } from '../../.ci/build/translate-lua.mjs';
import type { TranslatedScripts } from '../../lib/backends/redis/in-process/in-process-server.js';
import { TRANSLATED_SCRIPTS } from '../../lib/backends/redis/in-process/translated-scripts.generated.js';
import { SCRIPT_SOURCES } from '../../lib/backends/redis/scripts.generated.js';

/** A text of the scripts, as the build embeds them: without comments and indentation. Another one stands in its place. */
export type Change = readonly [from: string, to: string];

/** The scripts with mistakes in them. Only for tests of the simulation. */
export function brokenScripts(changes: readonly Change[]): TranslatedScripts {
  const broken = new Map<string, { path: string; text: string; includes: readonly never[] }>();
  for (const [name, source] of Object.entries(SCRIPT_SOURCES)) {
    const text = changes.reduce((former, [from, to]) => former.replaceAll(from, () => to), source);
    if (text !== source) broken.set(name, { path: name, text, includes: [] });
  }
  for (const [from] of changes)
    if (!Object.values(SCRIPT_SOURCES).some((source) => source.includes(from)))
      throw new Error(`no script has this text any more: ${from}`);
  // As the build writes it into a module.
  const factory = new Function(`return ${translateScripts(new Map(), broken)};`)() as TranslatedScripts;
  return (lua) => ({ ...TRANSLATED_SCRIPTS(lua), ...factory(lua) });
}

/** Requests are executed however late they arrive. */
export const checksNoDeadline: readonly Change[] = [
  ['micros > ARGV[1] * 1000', 'false'],
  ['now > tonumber(ARGV[1])', 'false'],
  ['limit and now > limit', 'false'],
];

/** Whoever waits in line is not told of a release. */
export const releasesWithoutLine: readonly Change[] = [
  ['if not lineCount or lineCount == 0 then', 'if true then'],
  ["redis.pcall('EXISTS', prefixed('nestjs_redis_lock_turns', KEYS[1])) == 0", 'true'],
  ['return serve(lock, publishTo(', 'return (publishTo('],
];

/** A place is granted the lock with the token of the holder before. */
export const grantsWithoutToken: readonly Change[] = [
  ['reserveTokens(clock, place.reserve, 1)', "upcoming, reserved = tonumber(redis.call('GET', clock)), 0"],
  [
    "reserveFencedTokens(prefixed('redisson_lock_token', line.lock), clock, place.reserve)",
    "upcoming, reserved = tonumber(redis.call('GET', prefixed('redisson_lock_token', line.lock))), 0",
  ],
];

/** A renewal acquires a lock that nobody holds. */
export const renewsWhatIsGone: readonly Change[] = [
  [
    'if not holdsPlain(lock, owner) then\nreturn 0\nend\nif becomesLonger',
    `if redis.call('EXISTS', lock) == 0 then
redis.call('HSET', lock, owner, '1')
redis.call('PEXPIRE', lock, time)
return 1
end
if not holdsPlain(lock, owner) then
return 0
end
if becomesLonger`,
  ],
];

/** The same for a lock that n may hold. */
export const renewsPermitsThatAreGone: readonly Change[] = [
  [
    'if not holdsPermit(lock, owner, now) then\nreturn 0\nend\nif limit',
    `if redis.call('EXISTS', lock) == 0 then
redis.call('ZADD', lock, now + lease, owner)
redis.call('PEXPIRE', lock, lease)
return 1
end
if not holdsPermit(lock, owner, now) then
return 0
end
if limit`,
  ],
];

/** A place stays in line until it lapses, although its caller has left the line or holds the lock. */
export const keepsPlaces: readonly Change[] = [
  ['if leaveLine(line, owner) == 1 then', "if redis.call('ZSCORE', line.places, owner) then"],
  ['leaveLine(line, owner, TOLD_UNTIL)', "redis.call('ZREM', line.lapses, TOLD_UNTIL)"],
  // Who is granted a permit has to leave, or all permits are granted to one place.
  [
    'leaveLine(line, owner, HEAD_START_UNTIL, TOLD_UNTIL)',
    `redis.call('ZREM', line.lapses, HEAD_START_UNTIL, TOLD_UNTIL)
if place.permits then
leaveLine(line, owner)
end`,
  ],
];

/** A permit whose lease has ended is available, and is available once more when it is given back. */
export const countsLeasedPermitsTwice: readonly Change[] = [
  ["if not given[id] and redis.call('ZSCORE', held, id) then", 'if not given[id] then'],
];

/** The same for permits that are only counted, if the request that gives them back is repeated. */
export const countsPermitsTwice: readonly Change[] = [['if earlierAnswer(latest, sequence) then', 'if false then']];

/** Whoever has held a lock that n may hold has a place among them for as long as others hold it. */
export const countsExpiredHolders: readonly Change[] = [
  ["redis.call('ZCOUNT', lock, '(' .. now, '+inf')", "redis.call('ZCARD', lock)"],
  ["redis.call('ZREMRANGEBYSCORE', lock, '-inf', now)\n", ''],
];

/** The same for permits with a lease. */
export const countsExpiredPermits: readonly Change[] = [
  ["local ended = redis.call('ZCOUNT', held, '-inf', now)", 'local ended = 0'],
];

/** Nobody remembers which call of a lock is the newest. */
export const forgetsTheNewest: readonly Change[] = [
  [
    "redis.pcall('HSET', key, client, string.format('%.0f', number), unpack(fields))",
    "redis.pcall('HDEL', key, client, unpack(fields))",
  ],
];

/** Of several permits that are free, only one is granted to the line. */
export const grantsOnePermit: readonly Change[] = [
  ['elseif not place.permits then\nreturn { place.lease', 'else\nreturn { place.lease'],
];
