import { tokenClock } from '../../../../lib/backends/redis/lock-keys.js';
import { type ScriptName, scripts } from '../../../../lib/backends/redis/scripts.js';
import { RedisWorld } from '../redis-world.js';

export const CLOCK = tokenClock({ isCluster: false }, '');
/** A deadline that no test reaches, in ms of any server's time. */
export const LATER = '9007199254740';
/** A reading of the clock of tokens that server time does not reach, so that the clock alone decides the next token. */
export const AHEAD = 4_000_000_000_000_000;

/** The line of the lock `a`: its places in order, when they lapse, and their terms. */
export const PLACES = 'nestjs_redis_lock_turns:{a}';
export const LAPSES = 'nestjs_redis_lock_turns_until:{a}';
export const TERMS = 'nestjs_redis_lock_turns_terms:{a}';
/** A lock is granted to the first place in its line for this long, in ms. */
export const CLAIM = 1_000;
/** A release leaves a free lock to clients outside the line for this long, in ms. */
export const HEAD_START = 10;
/** A place that wants a lock which n may hold has n times this fraction of a ms in the time at which it lapses. */
export const PERMIT = 1 / 2_048;

type Argument = string | number;

/** Runs single scripts on a server, with keys and arguments as the library sends them. */
export class ScriptWorld extends RedisWorld {
  constructor() {
    super();
    beforeEach(() => this.redis.flushall());
  }

  /** By its digest, as the library does. */
  async run(name: ScriptName, keys: readonly string[], args: readonly Argument[] = []): Promise<unknown> {
    const { source, sha1 } = scripts[name];
    await this.redis.script('LOAD', source);
    return this.redis.evalsha(sha1, keys.length, ...keys, ...args);
  }

  /** Runs a script as a user who may not call these commands. */
  async runWithout(
    commands: readonly string[],
    name: ScriptName,
    keys: readonly string[],
    args: readonly Argument[],
  ): Promise<unknown> {
    const forbidden = commands.map((command) => `-${command}`);
    await this.redis.call('ACL', 'SETUSER', 'limited', 'on', '>secret', '~*', '&*', '+@all', ...forbidden);
    const client = this.server.client({ username: 'limited', password: 'secret' });
    try {
      return await client.eval(scripts[name].source, keys.length, ...keys, ...args);
    } finally {
      client.disconnect();
      await this.redis.call('ACL', 'DELUSER', 'limited');
    }
  }

  /** The members of a sorted set, lowest score first. */
  async scores(key: string, encoding: 'utf8' | 'hex' = 'utf8'): Promise<Record<string, number>> {
    const all = await this.redis.zrangeBuffer(key, '0', '-1', 'WITHSCORES');
    return Object.fromEntries(
      all.flatMap((member, i) => (i % 2 === 0 ? [[member.toString(encoding), Number(all[i + 1])] as const] : [])),
    );
  }

  /** The server's time in ms. */
  async now(): Promise<number> {
    const [seconds, micros] = await this.redis.time();
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  }

  /** The owners in the line of the lock `a`. */
  line(): Promise<string[]> {
    return this.redis.zrange(PLACES, '0', '-1');
  }

  async withFullMemory<T>(work: () => Promise<T>): Promise<T> {
    await this.redis.config('SET', 'maxmemory', '1');
    try {
      return await work();
    } finally {
      await this.redis.config('SET', 'maxmemory', '0');
    }
  }

  /** What is published meanwhile on channels of this pattern: `channel message`. */
  async published(work: () => Promise<unknown>, pattern = '*'): Promise<string[]> {
    const listener = this.redis.duplicate();
    const heard: string[] = [];
    try {
      const isOver = new Promise<void>((resolve) => {
        listener.on('pmessage', (_pattern: string, channel: string, message: string) => {
          if (channel === 'over') resolve();
          else heard.push(`${channel} ${message}`);
        });
      });
      await listener.psubscribe(pattern, 'over');
      await work();
      await this.redis.publish('over', '');
      await isOver;
    } finally {
      listener.disconnect();
    }
    return heard;
  }

  /** How long the server keeps the key, in ms. At most `most`, and not much less. */
  async expectLease(key: string, most: number): Promise<void> {
    const left = await this.redis.pttl(key);
    expect(left).toBeLessThanOrEqual(most);
    expect(left).toBeGreaterThan(most - 5_000);
  }
}

/** For a time that a script has read between two others. */
export function expectBetween(time: number, from: number, to: number): void {
  expect(time).toBeGreaterThanOrEqual(from);
  expect(time).toBeLessThanOrEqual(to);
}
