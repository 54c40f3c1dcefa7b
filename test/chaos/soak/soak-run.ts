import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { leftBehind } from '../../support/left-behind.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { DISTURBANCES } from '../faults/disturbances.js';
import { checkFlights } from '../flights/flight-checker.js';
import type { FlightRecord } from '../flights/flight-history.js';
import { History, type HistoryRecord, machineTime } from '../history.js';
import { checkHistory } from '../history-checker.js';
import { RecordingProcess } from '../recording-process.js';
import { FEWEST_POINTS, WARM_POINTS } from './flatness.js';
import { NAMES, PROCESSES, permitsOf } from './names.js';
import type { SoakSpec } from './soak-program.js';
import type { Leak, Sample, SoakRecord } from './soak-record.js';

/** Leases of locks that are renewed, in milliseconds. */
const LEASE = 1_500;
const COMMAND_TIMEOUT = 400;
/** The first processes are never killed, so that something is measured from the beginning to the end. */
const ELDERS = 2;
/** How long the answer to a command may take. */
const PATIENCE = 60_000;
/** A request whose process was killed may take effect this much later, because the proxy may delay it. */
const FLIGHTS = { answeredWithin: 30_000, storedWithin: 1_000, ageSlack: 1_000 };

/** The keys of semaphores whose permits have leases. */
const SEMAPHORE = /^(lock:|nestjs_redis_lock_counter:\{lock:)seat:\d+\}?$/;
/** Those of semaphores without leases, and of latches. They are deleted after each chapter. */
const OF_CHAPTER = /^(lock:|nestjs_redis_lock_counter:\{lock:)(pool|gate):\d+:\d+\}?$/;

/** Token clocks, and the last tokens of fenced locks. */
const ETERNAL = /^(nestjs_redis_lock_clock|redisson_lock_token)\b/;
/** What single flights and newest callers leave for some seconds. */
const BRIEF = /^nestjs_redis_lock_(result|turns_newest):/;

/** Less would not show whether something grows. */
const FEWEST_CHAPTERS = WARM_POINTS + FEWEST_POINTS;

export interface SoakSettings {
  readonly seed: number;
  readonly minutes: number;
  readonly callers: number;
  readonly pause: number;
  readonly leaks: readonly Leak[];
}

/** A process since its start: it is replaced when it was killed. */
export interface Member {
  readonly slot: number;
  readonly title: string;
  readonly process: RecordingProcess<SoakSpec, SoakRecord>;
}

export interface ProcessSample extends Sample {
  readonly at: number;
  readonly process: string;
  /** No call was under way. */
  readonly resting: boolean;
}

export interface ServerSample {
  readonly at: number;
  readonly resting: boolean;
  readonly keys: number;
  readonly subscriptions: number;
  readonly connections: number;
  readonly memory: number;
  readonly cpu: number;
}

export interface Outcome {
  readonly began: number;
  readonly samples: readonly ProcessSample[];
  readonly server: readonly ServerSample[];
  readonly faults: readonly { readonly at: number; readonly what: string }[];
  readonly counts: Readonly<Record<'served' | 'refused' | 'lost' | 'flights' | 'chapters', number>>;
  /** What went wrong, except for what the samples show. */
  readonly violations: readonly string[];
  /** The histories in which the checkers found something. */
  readonly broken: readonly (readonly SoakRecord[])[];
}

/**
 * Six processes that use 500 names while faults occur. After each chapter, all calls end and all processes rest. Then
 * nothing may be left in Redis, the history of the chapter is checked, and what the processes are made of is comparable.
 */
export class SoakRun {
  private readonly random: SeededRandom;
  private readonly members: Member[] = [];
  private records: SoakRecord[] = [];
  private readonly samples: ProcessSample[] = [];
  private readonly server: ServerSample[] = [];
  private readonly faults: { at: number; what: string }[] = [];
  private readonly violations: string[] = [];
  private readonly broken: (readonly SoakRecord[])[] = [];
  private readonly counts = { served: 0, refused: 0, lost: 0, flights: 0, chapters: 0 };
  private readonly admin: Redis;
  private readonly began = machineTime();
  /** What is called with the next record, by process and kind. Other records belong to the history. */
  private readonly waiting = new Map<string, (record: SoakRecord) => void>();
  /** Keys that were left after an earlier chapter. */
  private readonly reported = new Set<string>();
  private starts = 0;
  private pings = 0;
  /** How often the data was lost in this chapter. */
  private losses = 0;

  static async start(settings: SoakSettings, note: (line: string) => void): Promise<SoakRun> {
    const redis = await startRedis();
    const run = new SoakRun(settings, note, redis, await startTcpProxy(redis.port));
    await Promise.all(Array.from({ length: PROCESSES }, (_, slot) => run.add(slot)));
    return run;
  }

  private constructor(
    private readonly settings: SoakSettings,
    private readonly note: (line: string) => void,
    private readonly redis: RedisServer,
    private readonly proxy: TcpProxy,
  ) {
    this.random = new SeededRandom(settings.seed);
    this.admin = redis.client();
  }

  async run(): Promise<void> {
    const end = this.began + this.settings.minutes * 60_000;
    const length = Math.min(60_000, (this.settings.minutes * 60_000) / 18);
    while (machineTime() < end || this.counts.chapters < FEWEST_CHAPTERS) await this.live(length);
  }

  /** Ends all processes. What is left then is part of the outcome. */
  async finish(): Promise<Outcome> {
    const results = await Promise.allSettled(this.members.map(({ process }) => process.stop()));
    for (const result of results) if (result.status === 'rejected') this.violations.push(String(result.reason));
    for (const name of await this.leftAtTheEnd()) this.violations.push(`left in Redis at the end: ${name}`);
    await this.proxy.stop();
    await this.redis.stop();
    const { began, samples, server, faults, counts, violations, broken } = this;
    return { began, samples, server, faults, counts, violations, broken };
  }

  /** Ends the processes and servers of a run that went wrong. */
  async abandon(): Promise<void> {
    await Promise.all(this.members.map(({ process }) => process.kill()));
    await this.proxy.stop();
    await this.redis.stop();
  }

  private async live(length: number): Promise<void> {
    const chapter = ++this.counts.chapters;
    this.records = [];
    this.losses = 0;
    await this.ask(this.members[0], `prepare ${chapter}`, 'prepared');
    for (const { process } of this.members) process.tell(`go ${chapter}`);
    const end = machineTime() + length;
    let isSampled = false;
    while (machineTime() < end) {
      await sleep(this.random.between(length / 20, length / 8));
      if (!isSampled && machineTime() > end - length / 2) {
        isSampled = true;
        await this.sample(false);
      }
      await this.break(chapter);
    }
    await this.proxy.heal();
    await Promise.all(this.members.map((member) => this.ask(member, 'rest', 'resting')));
    this.proxy.buryDead();
    await this.sweep(chapter);
    await this.sample(true);
    this.check(chapter);
  }

  private async break(chapter: number): Promise<void> {
    // Each run has these two, however short it is.
    const first = chapter === 1 && this.faults.length < 2 ? this.faults.length : undefined;
    const choices = Object.keys(DISTURBANCES);
    const drawn = this.random.next() * (choices.length + 3);
    if (first === 0 || (first === undefined && drawn < 0.5)) return this.killOne();
    if (first === 1 || drawn < 1) return this.loseData();
    if (drawn < 3) return this.freezeOne(drawn < 2 ? 300 : LEASE + 800);
    const what = choices[Math.floor(drawn - 3)];
    this.fault(what);
    const { redis, admin, proxy } = this;
    await DISTURBANCES[what]({ redis, admin, proxy, lease: LEASE });
  }

  private async killOne(): Promise<void> {
    const victim = this.random.pick(this.members.slice(ELDERS));
    this.fault(`${victim.title} is killed`);
    await victim.process.kill();
    await this.add(victim.slot);
    this.members[victim.slot].process.tell(`go ${this.counts.chapters}`);
  }

  private async freezeOne(time: number): Promise<void> {
    const { title, process } = this.random.pick(this.members);
    this.fault(`${title} is stopped for ${time} ms`);
    process.freeze();
    await sleep(time);
    process.thaw();
  }

  /** Every grant that a process records before its answer to the pings may have been made before the loss. */
  private async loseData(): Promise<void> {
    this.fault('Redis is killed, and forgets everything');
    this.losses++;
    const at = machineTime();
    await this.redis.kill();
    await this.proxy.refuse();
    for (let round = 0; round < 3; round++) await this.pingAll();
    await sleep(200);
    await this.redis.start();
    const until = machineTime();
    this.records.push({ at, process: 'server', kind: 'upset', until, reason: 'the server lost its data' });
    const event = { kind: 'data lost' } as const;
    this.records.push({ at: until, process: 'server', kind: 'flight', event });
    await this.proxy.heal();
  }

  private async pingAll(): Promise<void> {
    const number = ++this.pings;
    const pongs = this.members.map(async (member) => {
      while ((await this.ask(member, `ping ${number}`, 'pong')).number !== number);
    });
    await Promise.all(pongs);
  }

  private fault(what: string): void {
    this.faults.push({ at: machineTime(), what });
  }

  private async add(slot: number): Promise<void> {
    const title = `p${slot + 1}.${++this.starts}`;
    const { seed, callers, pause, leaks } = this.settings;
    const ownSeed = seed * 1_000 + this.starts;
    const spec: SoakSpec = {
      process: title,
      options: {
        connection: this.proxy.url,
        watchdogTimeout: LEASE,
        commandTimeout: COMMAND_TIMEOUT,
        waiterTimeout: 1_000,
      },
      load: { callers, pause, lease: LEASE, seed: ownSeed, slot },
      flights: { names: NAMES.flight, callers: 2, keepFor: 500, longBody: 600, pause, seed: ownSeed },
      leaks: slot === 0 ? leaks : [],
    };
    const process = new RecordingProcess<SoakSpec, SoakRecord>(spec, {
      program: 'test/chaos/soak/soak-program.ts',
      record: (record) => this.heard(record),
      crashed: (at) => {
        this.records.push({ at, process: title, kind: 'crashed' });
        this.records.push({ at, process: title, kind: 'flight', event: { kind: 'crashed' } });
      },
      endsWithin: 30_000,
    });
    this.members[slot] = { slot, title, process };
    await this.answer(title, 'ready');
  }

  private heard(record: SoakRecord): void {
    const key = `${record.process} ${record.kind}`;
    const resolve = this.waiting.get(key);
    if (resolve === undefined) this.records.push(record);
    else {
      this.waiting.delete(key);
      resolve(record);
    }
  }

  private ask<K extends SoakRecord['kind']>({ title, process }: Member, command: string, kind: K) {
    const answer = this.answer(title, kind);
    process.tell(command);
    return answer;
  }

  private answer<K extends SoakRecord['kind']>(title: string, kind: K): Promise<SoakRecord & { kind: K }> {
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error(`${title} is not ${kind} within ${PATIENCE} ms`));
      const timer = setTimeout(fail, PATIENCE);
      this.waiting.set(`${title} ${kind}`, (record) => {
        clearTimeout(timer);
        resolve(record as SoakRecord & { kind: K });
      });
    });
  }

  /**
   * Nothing may be left in Redis but semaphores and latches, which no lease ends. All permits must be there, except
   * those that killed processes had counted. Semaphores without leases and latches are deleted.
   */
  private async sweep(chapter: number): Promise<void> {
    const { admin } = this;
    const left = async () => {
      const keys = (await leftBehind(admin)).filter((key) => !SEMAPHORE.test(key) && !OF_CHAPTER.test(key));
      const expires = await Promise.all(keys.map(async (key) => BRIEF.test(key) && (await admin.pttl(key)) !== -1));
      return keys.filter((key, i) => !expires[i] && !this.reported.has(key));
    };
    // Leaked keys would never go.
    const patience = this.settings.leaks.includes('keys') ? 3_000 : 30_000;
    await until(async () => (await left()).length === 0, patience).catch(() => {});
    await this.ask(this.members[0], 'count', 'counted');
    const over = (await admin.keys('*')).filter((key) => OF_CHAPTER.test(key));
    if (over.length > 0) await admin.del(...over);
    for (const key of [...(await left()), ...(await this.eternal())]) {
      if (!this.reported.has(key)) this.violations.push(`left in Redis after chapter ${chapter}: ${key}`);
      this.reported.add(key);
    }
  }

  /** Semaphores stay, with all their permits. */
  private async leftAtTheEnd(): Promise<string[]> {
    const { admin } = this;
    const left = async () => {
      const channels = (await admin.pubsub('CHANNELS')) as string[];
      const keys = (await leftBehind(admin)).filter((key) => !SEMAPHORE.test(key));
      return [...keys, ...channels.map((channel) => `subscription ${channel}`)];
    };
    await until(async () => (await left()).length === 0, 30_000).catch(() => {});
    return [...(await left()), ...(await this.eternal())];
  }

  /** Keys that never expire, and must. */
  private async eternal(): Promise<string[]> {
    const { admin } = this;
    const keys = (await admin.keys('*')).filter((key) => !ETERNAL.test(key) && !SEMAPHORE.test(key));
    const times = await Promise.all(keys.map((key) => admin.pttl(key)));
    return keys.filter((_, i) => times[i] === -1);
  }

  private async sample(resting: boolean): Promise<void> {
    for (const member of this.members) {
      const { at, sample } = await this.ask(member, 'sample', 'sample');
      this.samples.push({ at, process: member.title, resting, ...sample });
    }
    const { admin } = this;
    const info = await admin.info();
    const number = (field: string) => Number(new RegExp(`${field}:([\\d.]+)`).exec(info)?.[1]);
    this.server.push({
      at: machineTime(),
      resting,
      keys: await admin.dbsize(),
      subscriptions: ((await admin.pubsub('CHANNELS')) as string[]).length,
      connections: this.proxy.live,
      memory: number('used_memory'),
      cpu: (number('used_cpu_user') + number('used_cpu_sys')) * 1_000,
    });
  }

  private check(chapter: number): void {
    const records = [...this.records].sort((one, other) => one.at - other.at);
    const history = new History(records.filter(({ kind }) => kind !== 'flight') as HistoryRecord[]);
    const flights = records.flatMap(({ at, process, ...rest }) =>
      rest.kind === 'flight' ? [{ at, process, ...rest.event } as FlightRecord] : [],
    );
    const { violations } = checkHistory(history, { permits: permitsOf(chapter), except: ['permits kept'] });
    // Permits that are only counted are given back to a server that has forgotten that they were taken.
    const found = violations
      .filter(({ lock }) => this.losses === 0 || !lock?.startsWith('pool:'))
      .map(({ rule, message }) => `${rule}: ${message}`);
    found.push(...checkFlights(flights, FLIGHTS).map(({ rule, message }) => `${rule}: ${message}`));
    this.violations.push(...found.map((violation) => `chapter ${chapter}: ${violation}`));
    if (found.length > 0) this.broken.push(records);
    const count = (kind: SoakRecord['kind']) => records.filter((record) => record.kind === kind).length;
    this.counts.served += count('granted');
    this.counts.refused += count('refused');
    this.counts.lost += count('lost');
    this.counts.flights += flights.filter(({ kind }) => kind === 'answered').length;
    const minutes = ((machineTime() - this.began) / 60_000).toFixed(1);
    this.note(`chapter ${chapter}, ${minutes} min: ${count('granted')} served, ${found.length} violations`);
  }
}
