import { setTimeout as sleep } from 'node:timers/promises';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { machineTime } from '../history.js';

/** Leases of all services, in ms. */
export const LEASE = 3_000;

/** What stands still. `restart`: Redis is killed, and starts again with all of its data. */
export const FAULTS = ['Redis stops', 'network stops', 'Redis restarts', 'link is half-open'] as const;
export type Fault = (typeof FAULTS)[number];

/**
 * When it stands still. By the word before the colon for a lock that is handed over, by the one behind it for one that is
 * free.
 */
export const MOMENTS = {
  /** Before Redis has received the request that makes the subject the owner. */
  asked: 'before the release | the request arrives',
  /** Redis has written the owner, and what says so is on its way. */
  written: 'between release and message | request and answer',
  /** It has arrived, and nothing arrives after it. */
  heard: 'between message | answer and body',
  /** The body runs, and the first renewal is due soon. */
  running: 'between body and first renewal',
} as const;
export type Moment = keyof typeof MOMENTS;

export type Way = 'handed over' | 'acquired';

/** One lock that changes hands, while something stands still at a moment of that. */
export interface Play {
  readonly way: Way;
  readonly fault: Fault;
  readonly moment: Moment;
  /** For how many ms. */
  readonly stall: number;
  /** How long the subject's body runs, in ms. It ignores its signal. */
  readonly body: number;
  readonly terms: LockOptions;
  /** If it is longer than the stall, the release of a body that ends meanwhile is answered. */
  readonly commandTimeout: number;
}

export interface Outcome {
  /** `ended`, or the name of the error that the subject's caller got. */
  readonly result: string;
  /** When its body began, in ms after the moment. */
  readonly began: number;
  /** Whether the body ended while its process still believed that it holds the lock. */
  readonly endedWithinLease: boolean;
  /** For how long the bodies of the subject and of the next one ran at once, in ms. */
  readonly together: number;
  /** Whether the subject's body ran and its process believed that it holds the lock when the next one began. */
  readonly bothBelieved: boolean;
}

const NAME = 'aimed';

/** In the answer that gives the lock to its caller. */
const TOKEN = /:\d{16}\r\n/;

/** SIGSTOP has no moment between what Redis has written and what has left it. */
export function isPossible(fault: Fault, moment: Moment): boolean {
  return fault !== 'Redis stops' || moment !== 'written';
}

/**
 * Plays it on a server of its own.
 *
 * @throws Error when the moment was missed
 */
export async function play(play: Play): Promise<Outcome> {
  const stage = await Stage.set(play);
  try {
    return await stage.run();
  } finally {
    await stage.clear();
  }
}

/** A Redis, and three services with a proxy each: the holder, the subject, which is next, and who is next after it. */
class Stage {
  private readonly services: LockService[];
  private restarted: Promise<void> | undefined;
  private struckAt: number | undefined;
  private stallEnds = 0;

  static async set(play: Play): Promise<Stage> {
    const redis = await startRedis({
      args: play.fault === 'Redis restarts' ? ['--appendonly', 'yes', '--appendfsync', 'always'] : [],
    });
    const proxies = await Promise.all([0, 1, 2].map(() => startTcpProxy(redis.port)));
    return new Stage(play, redis, proxies);
  }

  private constructor(
    private readonly play: Play,
    private readonly redis: RedisServer,
    private readonly proxies: readonly TcpProxy[],
  ) {
    this.services = proxies.map(({ url: connection }) =>
      createLockService({
        connection,
        watchdogTimeout: LEASE,
        commandTimeout: play.commandTimeout,
        waitTime: Number.POSITIVE_INFINITY,
        outageTimeout: Number.POSITIVE_INFINITY,
        logger: { warn: () => {}, error: () => {} },
      }),
    );
  }

  async run(): Promise<Outcome> {
    const { play } = this;
    const [holder, subject, next] = this.services;
    // Afterwards, connections are open and scripts are known.
    for (const service of this.services) await service.withLock('other', play.terms, async () => {});
    const handsOver = play.way === 'handed over';
    const held = handsOver ? await holder.acquire(NAME, play.terms) : undefined;

    let began = Number.NaN;
    let ended = Number.NaN;
    let nextBegan = Number.NaN;
    let nextEnded = Number.NaN;
    let endedWithinLease = false;
    let bothBelieved = false;
    let believes = () => false;
    const askAsNext = () =>
      next.withLock(NAME, play.terms, async () => {
        nextBegan = machineTime();
        bothBelieved = !Number.isNaN(began) && Number.isNaN(ended) && believes();
        await sleep(2);
        nextEnded = machineTime();
      });
    const askAsSubject = () =>
      subject
        .withLock(NAME, play.terms, async (lease) => {
          began = machineTime();
          believes = () => lease.held;
          const runs = sleep(play.body);
          if (play.moment === 'running') {
            await sleep(LEASE / 4);
            this.strike();
          }
          await runs;
          endedWithinLease = lease.held;
          ended = machineTime();
        })
        .then(
          () => 'ended',
          (error: Error) => error.name,
        );
    let subjectCalls: Promise<string>;
    let nextCalls: Promise<void>;
    if (held !== undefined) {
      subjectCalls = askAsSubject();
      await this.inLine(1);
      nextCalls = askAsNext();
      await this.inLine(2);
      this.aim();
      await held.release().catch(() => {});
    } else {
      this.aim();
      subjectCalls = askAsSubject();
      await until(() => this.struckAt !== undefined || !Number.isNaN(began));
      nextCalls = askAsNext();
    }
    const [result] = await Promise.all([subjectCalls, nextCalls]);
    if (this.struckAt === undefined) throw new Error(`the moment was missed: ${JSON.stringify(play)}`);
    return {
      result,
      began: began - this.struckAt,
      endedWithinLease,
      together: Math.max(0, Math.min(ended, nextEnded) - Math.max(began, nextBegan)),
      bothBelieved,
    };
  }

  async clear(): Promise<void> {
    if (this.redis.running) this.redis.resume();
    await this.restarted;
    await Promise.all(this.proxies.map((proxy) => proxy.heal()));
    await Promise.all(this.services.map((service) => service.close()));
    await Promise.all(this.proxies.map((proxy) => proxy.stop()));
    await this.redis.stop();
  }

  private async inLine(count: number): Promise<void> {
    const client = this.redis.client();
    await until(async () => (await client.zcard(`nestjs_redis_lock_turns:{lock:${NAME}}`)) === count);
    client.disconnect();
  }

  /** Strikes when the request, the answer or the message passes the proxy that is meant by the moment. */
  private aim(): void {
    const { way, moment } = this.play;
    const [holder, subject] = this.proxies;
    const asks = (chunk: Buffer) => chunk.includes(`lock:${NAME}`);
    const strikeBefore = () => {
      this.strike();
      return this.held();
    };
    const strikeAfter = () => {
      queueMicrotask(() => this.strike());
      return 0;
    };
    const strike = moment === 'heard' ? strikeAfter : strikeBefore;
    if (moment === 'asked') {
      const asker = way === 'handed over' ? holder : subject;
      asker.holdUp({ requests: (chunk) => (asks(chunk) ? strikeBefore() : 0) });
    } else if (moment !== 'running' && way === 'handed over') {
      subject.holdUp({ replies: (chunk) => (chunk.includes(' granted') ? strike() : 0) });
    } else if (moment !== 'running') {
      subject.holdUp({ replies: (chunk) => (TOKEN.test(chunk.toString('latin1')) ? strike() : 0) });
    }
  }

  /** For how many ms the network still holds what passes now. */
  private held(): number {
    return this.play.fault === 'network stops' ? Math.max(0, this.stallEnds - machineTime()) : 0;
  }

  private strike(): void {
    if (this.struckAt !== undefined) return;
    const { fault, stall, moment, way } = this.play;
    this.struckAt = machineTime();
    this.stallEnds = this.struckAt + stall;
    for (const proxy of this.proxies) proxy.holdUp();
    const after = (work: () => unknown) => setTimeout(work, stall);
    if (fault === 'Redis stops') {
      this.redis.pause();
      after(() => this.redis.resume());
    } else if (fault === 'network stops') {
      const hold = () => this.held();
      for (const proxy of this.proxies) proxy.holdUp({ requests: hold, replies: hold });
    } else if (fault === 'Redis restarts') {
      for (const proxy of this.proxies) if (moment !== 'heard') proxy.disconnect();
      this.restarted = this.redis
        .kill()
        .then(() => sleep(stall))
        .then(() => this.redis.start());
    } else {
      const proxy = this.proxies[moment === 'asked' && way === 'handed over' ? 0 : 1];
      proxy.cutHalfOpen();
      after(() => proxy.heal());
    }
  }
}
