import type { Redis } from 'ioredis';
import { tokenClock } from '../../../../lib/backends/redis/lock-keys.js';
import { type ScriptName, scripts } from '../../../../lib/backends/redis/scripts.js';
import { InProcessRedis } from '../../../support/servers/in-process-redis.js';
import type { RedisServer, RedisServerOptions } from '../../../support/servers/redis-server.js';
import { RedisWorld } from '../redis-world.js';

/** Whether the scripts run in this process, as JavaScript. */
const IN_PROCESS = process.env.TEST_SCRIPTS === 'in-process';

export const CLOCK = tokenClock({ isCluster: false }, '');
/** A deadline that no test reaches, in ms of any server's time. */
export const LATER = '9007199254740';
/** A reading of the clock of tokens that server time does not reach, so that the clock alone decides the next token. */
export const AHEAD = 4_000_000_000_000_000;

/** The line of the lock `a`: its places in order, when they lapse, and their terms. */
export const PLACES = 'nestjs_redis_lock_turns:{a}';
export const LAPSES = 'nestjs_redis_lock_turns_until:{a}';
export const TERMS = 'nestjs_redis_lock_turns_terms:{a}';
/** The lease with which these places are granted a lock, in ms. */
export const GRANT = 20_000;
/** A release leaves a free lock to clients outside the line, or to those who were told of it, for this long, in ms. */
export const HEAD_START = 10;
/** The longest time that a script believes of this, in ms. */
export const LONGEST_HEAD_START = 5_000;
/** A place that wants a lock which n may hold has n times this fraction of a ms in the time at which it lapses. */
export const PERMIT = 1 / 2_048;

type Argument = string | number;

/** The terms of a place that is granted the lock: see place-of.lua. */
export function grantTerms(terms: Readonly<Record<string, Argument>> = {}): string {
  const usual = { kind: 'r', isCounted: 1, lease: GRANT, keep: 60_000, permits: 0, reserve: 0, highest: 0, since: 1 };
  return `l ${Object.values({ ...usual, server: '0x0', nonce: '-', ...terms }).join(' ')}`;
}

function channelsOf(owners: readonly string[], tag = '{a}'): string[] {
  return owners.map((owner) => `nestjs_redis_lock_turn:${tag}:${owner.split(':')[0]}`);
}

/** Runs single scripts on a server, with keys and arguments as the library sends them. */
export class ScriptWorld extends RedisWorld {
  private ears!: Redis;

  constructor() {
    super();
    beforeAll(() => {
      this.ears = this.server.client();
    });
    beforeEach(() => this.redis.flushall());
    afterEach(() => this.ears.unsubscribe());
  }

  /** Listens to the channels of these places in the line of the lock `a`, as their processes do. */
  async listen(...owners: string[]): Promise<void> {
    await this.ears.subscribe(...channelsOf(owners));
  }

  /** The opposite of {@link listen}. */
  async deafen(...owners: string[]): Promise<void> {
    await this.ears.unsubscribe(...channelsOf(owners));
  }

  /**
   * Adds places at the end of the line of the lock `a`, each with the ms from now after which it lapses and, as a
   * fraction, how many may hold the lock with it. Their processes listen. Returns the time.
   *
   * @param terms of all of them; by default, they are granted the lock
   * @param tag of another lock
   */
  async addPlaces(places: Readonly<Record<string, number>>, terms?: string, tag = '{a}'): Promise<number> {
    const now = await this.now();
    const [inOrder, lapses, allTerms] = [PLACES, LAPSES, TERMS].map((key) => key.replace('{a}', tag));
    const before = await this.redis.zcard(inOrder);
    const entries = Object.entries(places);
    const termsFor = (time: number) => {
      const permits = Math.round((((time % 1) + 1) % 1) / PERMIT);
      const keep = Math.max(0, Math.floor(time));
      return grantTerms(permits > 0 ? { kind: 'p', keep, permits } : { keep });
    };
    await this.redis.zadd(inOrder, ...entries.flatMap(([owner], i) => [before + i + 1, owner]));
    await this.redis.zadd(lapses, ...entries.flatMap(([owner, time]) => [now + time, owner]));
    await this.redis.hset(allTerms, ...entries.flatMap(([owner, time]) => [owner, terms ?? termsFor(time)]));
    await this.ears.subscribe(...channelsOf(Object.keys(places), tag));
    return now;
  }

  protected override async start(options: RedisServerOptions): Promise<RedisServer> {
    if (!IN_PROCESS) return super.start(options);
    return (await new InProcessRedis().start()) as unknown as RedisServer;
  }

  /** By its digest, as the library does. */
  async run(name: ScriptName, keys: readonly string[], args: readonly Argument[] = []): Promise<unknown> {
    const { source, sha1 } = scripts[name];
    await this.redis.script('LOAD', source);
    return this.redis.evalsha(sha1, keys.length, ...keys, ...args);
  }

  /** Runs a script as a user who may not call these commands, or publish to channels that do not begin with this. */
  async runWithout(
    commands: readonly string[],
    name: ScriptName,
    keys: readonly string[],
    args: readonly Argument[],
    publishesTo = '',
  ): Promise<unknown> {
    const { server } = this;
    if (server instanceof InProcessRedis)
      return server.without(commands, () => this.run(name, keys, args), publishesTo);
    const rules = ['resetchannels', `&${publishesTo}*`, '+@all', ...commands.map((command) => `-${command}`)];
    await this.redis.call('ACL', 'SETUSER', 'limited', 'on', '>secret', '~*', ...rules);
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

  /**
   * The messages that clients in line get meanwhile: `{lock}:client message`. Only their channels are listened to,
   * because a release counts who listens to it.
   */
  async told(work: () => Promise<unknown>): Promise<string[]> {
    const turns = 'nestjs_redis_lock_turn:';
    return (await this.published(work, `${turns}*`)).map((message) => message.slice(turns.length));
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
