import type { Redis } from 'ioredis';
import { toBytes, toText } from '../../../../lib/backends/redis/in-process/bytes.js';
import { InProcessServer } from '../../../../lib/backends/redis/in-process/in-process-server.js';
import { LuaError } from '../../../../lib/backends/redis/in-process/lua-table.js';
import { TRANSLATED_SCRIPTS } from '../../../../lib/backends/redis/in-process/translated-scripts.generated.js';
import { type ScriptName, scripts } from '../../../../lib/backends/redis/scripts.js';
import { ADDRESS, HEARD, ROUNDED_TO, type Step, TIME } from './random-calls.js';

/** What a server did. */
export interface Outcome {
  /** The reply, or the code of an error. */
  readonly reply: unknown;
  /** Each key with its type, its value, and how long it lives. */
  readonly keys: unknown;
  /** Channels and messages. */
  readonly published: readonly string[];
}

/** The list to which a script on the Redis server adds what it publishes. */
const PUBLISHED = 'comparison:published';

/**
 * In front of a script, so that Redis has the same time as the server in this process, and tells the lives of keys as
 * exactly. The calls of a scene take less than half of what they are rounded to.
 */
const PRELUDE = `local redis = (function(real)
  local function watched(call)
    return function(name, ...)
      name = string.upper(name)
      if name == 'TIME' then
        return { '${Math.floor(TIME / 1e6)}', '${TIME % 1e6}' }
      elseif name == 'PUBLISH' or name == 'SPUBLISH' then
        real.call('RPUSH', '${PUBLISHED}', table.concat({ ... }, ' '))
      end
      local reply = call(name, ...)
      if name == 'PTTL' and type(reply) == 'number' and reply > 0 then
        return math.floor(reply / ${ROUNDED_TO} + 0.5) * ${ROUNDED_TO}
      end
      return reply
    end
  end
  local own = { call = watched(real.call), pcall = watched(real.pcall) }
  return setmetatable(own, { __index = real, __tostring = function() return 'table: ${ADDRESS}' end })
end)(redis)
`;

/** Returns all keys but that of the comparison, in order, and what was published since the last time. */
const LOOK = `local all = redis.call('KEYS', '*')
table.sort(all)
local found = {}
for _, key in ipairs(all) do
  if key ~= '${PUBLISHED}' then
    local type = redis.call('TYPE', key).ok
    local value
    if type == 'string' then value = redis.call('GET', key)
    elseif type == 'hash' then value = redis.call('HGETALL', key)
    elseif type == 'list' then value = redis.call('LRANGE', key, 0, -1)
    else value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
    local left = redis.call('PTTL', key)
    found[#found + 1] = { key, type, value, left > 0 and math.floor(left / ${ROUNDED_TO} + 0.5) * ${ROUNDED_TO} or left }
  end
end
local published = redis.call('LRANGE', '${PUBLISHED}', 0, -1)
redis.call('DEL', '${PUBLISHED}')
return { found, published }`;

/** A Redis server and the one in this process, to which the same happens. */
export class TwinServers {
  readonly #inProcess = new InProcessServer({ scripts: TRANSLATED_SCRIPTS, micros: () => TIME, address: ADDRESS });
  #published: string[] = [];
  readonly #digests = new Map<ScriptName, string>();

  constructor(
    private readonly redis: Redis,
    private readonly listener: Redis,
  ) {
    const server = this.#inProcess;
    const execute = server.execute.bind(server);
    server.execute = (name, args) => {
      const command = name.toUpperCase();
      if (command === 'PUBLISH' || command === 'SPUBLISH') this.#published.push(args.join(' '));
      const reply = execute(name, args);
      const isTime = command === 'PTTL' && typeof reply === 'number' && reply > 0;
      return isTime ? Math.floor(reply / ROUNDED_TO + 0.5) * ROUNDED_TO : reply;
    };
  }

  async open(): Promise<void> {
    for (const name of Object.keys(scripts) as ScriptName[]) {
      const digest = await this.redis.script('LOAD', PRELUDE + scripts[name].source);
      this.#digests.set(name, digest as string);
    }
    await this.listener.subscribe(...HEARD);
    for (const channel of HEARD) this.#inProcess.subscribe('channel', channel, () => {});
  }

  async clear(): Promise<void> {
    await this.redis.flushall();
    this.#inProcess.keys.clear();
    this.#published = [];
  }

  /** What each of them did: Redis, and the server in this process. */
  async both(step: Step): Promise<readonly [Outcome, Outcome]> {
    const real = await this.#onRedis(step);
    const [keys, published] = (await this.redis.eval(LOOK, 0)) as [unknown, string[]];
    return [{ reply: withCodes(real), keys: inOrder(keys), published: clientsInOrder(published) }, this.#here(step)];
  }

  async #onRedis(step: Step): Promise<unknown> {
    try {
      if ('command' in step) return await this.redis.call(...(step.command as [string, ...string[]]));
      const digest = this.#digests.get(step.script) as string;
      return await this.redis.evalsha(digest, step.keys.length, ...step.keys, ...step.args);
    } catch (error) {
      return codeOf(error);
    }
  }

  #here(step: Step): Outcome {
    const server = this.#inProcess;
    let reply: unknown;
    try {
      reply = toText(
        'command' in step
          ? server.execute(step.command[0] as string, step.command.slice(1).map(toBytes))
          : server.run(scripts[step.script].sha1, step.keys.map(toBytes), step.args.map(toBytes)),
      );
    } catch (error) {
      if (!(error instanceof LuaError)) throw error;
      reply = codeOf(error);
    }
    const published = clientsInOrder(this.#published.splice(0).map((message) => toText(message) as string));
    const keys = server.keys.keys().sort(byBytes);
    const look = (key: string) => {
      const type = server.keys.typeOf(key);
      const [name, ...args] = {
        string: ['GET', key],
        hash: ['HGETALL', key],
        list: ['LRANGE', key, '0', '-1'],
        zset: ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
      }[type as 'string'] as [string, ...string[]];
      return [toText(key), type, toText(server.execute(name, args)), server.execute('PTTL', [key])];
    };
    return { reply: withCodes(reply), keys: inOrder(keys.map(look)), published };
  }
}

/** A hash has no order: Redis tells that of small ones, and any of large ones. */
function inOrder(keys: unknown): unknown {
  return (keys as [string, string, unknown, number][]).map(([key, type, value, left]) => {
    if (type === 'zset') return [key, type, (value as string[]).map(inOneWay), left];
    if (type !== 'hash') return [key, type, value, left];
    const entries = value as string[];
    const fields = entries.flatMap((field, i) => (i % 2 === 0 ? [`${field} = ${entries[i + 1]}`] : []));
    return [key, type, fields.sort(), left];
  });
}

/** A score above 2^53 has an exponent in some versions of Redis, and all its digits in Redis 8. */
function inOneWay(score: string, i: number): string {
  return i % 2 === 1 && Math.abs(Number(score)) > Number.MAX_SAFE_INTEGER ? String(Number(score)) : score;
}

/** A script tells clients in the order of a Lua table, which is any. */
function clientsInOrder(published: readonly string[]): readonly string[] {
  const isToClient = (message: string) => message.startsWith('nestjs_redis_lock_client:');
  return [...published.filter((message) => !isToClient(message)), ...published.filter(isToClient).sort()];
}

/** A reply with codes for the errors in it. */
function withCodes(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(withCodes);
  return typeof reply === 'string' && ERROR.test(reply) ? codeOf({ message: reply }) : reply;
}

/** The words of an error of Redis or of Lua, which scripts put into their answers. */
const ERROR = /^(?:[A-Z]+ .* |.*user_script.*|ERR .*)|attempt to|bad argument/;
const CODES = /\b(WRONGTYPE|NOTALOCK|OOM|NOPERM|READONLY|NOSCRIPT)\b/;

/** What a caller makes of an error. The words differ from one version of Redis to the next. */
function codeOf(error: unknown): string {
  const { message } = error as { readonly message: string };
  if (/does not know|is not of this process/.test(message)) throw error;
  return `error ${CODES.exec(message)?.[1] ?? ''}`;
}

const byBytes = (one: string, other: string) => (one < other ? -1 : 1);
