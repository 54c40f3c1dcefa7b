import { setTimeout as sleep } from 'node:timers/promises';
import { machineTime } from '../chaos/history.js';
import { RecordingProcess } from '../chaos/recording-process.js';
import { startTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.js';
// @ts-expect-error: this module has no types.
import { SMALL_HEAP } from '../support/runtime/live-heap.mjs';
import { type RedisSentinel, startSentinel } from '../support/servers/redis-sentinel.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { ServerClock } from '../support/servers/server-clock.js';
import { until } from '../support/until.js';
import type { PeerRecord } from './peer-record.js';
import { type Fault, FIXED_LEASE, type Library } from './promises.js';

/** The same for all libraries, in milliseconds. */
export const LEASE = 2_000;
export const WAIT = 10_000;
export const COMMAND_TIMEOUT = 1_000;
/** An option of this library, where the event loop is blocked. */
const KEEP_WHILE_BLOCKED = 120_000;
const PROCESSES = 3;
/** The longest time that is waited for a grant, in milliseconds. */
const SERVED_WITHIN = 20_000;

interface Load {
  readonly callers: number;
  readonly body: number;
  readonly pause: number;
}

interface PeerSpec extends Load {
  readonly process: string;
  readonly library: Library;
  readonly settings: object;
  readonly wait: number;
}

type PeerProcess = RecordingProcess<PeerSpec, PeerRecord>;

export interface CellOutcome {
  readonly records: readonly PeerRecord[];
  /** What else was seen. */
  readonly notes: readonly string[];
  /** Whether another caller got the lock before the body of the first one had ended, where a fault asks that. */
  readonly isLost?: boolean | undefined;
}

/** The load where nothing about the body matters. */
const SHORT: Load = { callers: 2, body: 300, pause: 50 };
/** Bodies that a fault is likely to meet, and that are shorter than a lease. */
const LONG: Load = { callers: 1, body: 1_500, pause: 50 };
const IDLE: Load = { callers: 0, body: 0, pause: 0 };

/** Three processes with one library, whose callers want one lock while something breaks. */
export class PeerRun {
  private readonly records: PeerRecord[] = [];
  private readonly processes: PeerProcess[] = [];
  private readonly proxies: TcpProxy[] = [];
  private readonly notes: string[] = [];
  private redis?: RedisServer;
  private sentinel?: RedisSentinel;
  private clock?: ServerClock;
  private isLost?: boolean;

  private constructor(private readonly library: Library) {}

  static async of(library: Library, fault: Fault): Promise<CellOutcome> {
    const run = new PeerRun(library);
    try {
      await FAULT[fault].call(run);
      await run.end();
    } finally {
      await Promise.all(run.processes.map((process) => process.kill()));
      await Promise.all(run.proxies.map((proxy) => proxy.stop()));
      await run.redis?.stop();
      await run.sentinel?.stop();
      run.clock?.remove();
    }
    return { records: run.records, notes: run.notes, isLost: run.isLost };
  }

  private async start(load: Load, { env = {}, withSentinel = false, keepWhileBlocked = 0 } = {}): Promise<void> {
    if (withSentinel) this.sentinel = await startSentinel();
    else this.redis = await startRedis({ env });
    for (let i = 1; i <= PROCESSES; i++) {
      const common = { lease: LEASE, commandTimeout: COMMAND_TIMEOUT, keepWhileBlocked };
      const settings =
        this.sentinel === undefined
          ? { ...common, url: (await this.proxy()).url }
          : { ...common, sentinels: this.sentinel.options };
      const title = `p${i}`;
      const spec: PeerSpec = { process: title, library: this.library, settings, wait: WAIT, ...load };
      this.processes.push(
        new RecordingProcess(spec, {
          program: 'test/peers/peer-program.mjs',
          isPlain: true,
          nodeOptions: [`--max-old-space-size=${SMALL_HEAP}`],
          record: (record) => void this.records.push(record),
          crashed: (at) => void this.records.push({ at, process: title, kind: 'crashed' }),
          endsWithin: 30_000,
        }),
      );
    }
    await until(() => this.count('ready') === PROCESSES, 60_000);
    for (const process of this.processes) process.tell('go');
    if (load.callers > 0) await until(() => this.count('granted') >= PROCESSES, SERVED_WITHIN);
  }

  private async proxy(): Promise<TcpProxy> {
    const proxy = await startTcpProxy(this.redis!.port);
    this.proxies.push(proxy);
    return proxy;
  }

  private async end(): Promise<void> {
    const results = await Promise.allSettled(this.processes.map((process) => process.stop()));
    for (const result of results)
      if (result.status === 'rejected') this.notes.push(String(result.reason).slice(0, 300));
    const unhandled = this.records.filter(({ kind }) => kind === 'unhandled').length;
    if (unhandled > 0) this.notes.push(`${unhandled} unhandled errors, each of which ends a process by default`);
    if (this.redis === undefined) return;
    const keys = await this.redis.client().keys('*');
    const left = keys.filter(
      (key) => /lock$|observed/.test(key) && !/^nestjs_redis_lock_(clock|request|line)/.test(key),
    );
    if (left.length > 0) this.notes.push(`left behind: ${left.join(', ')}`);
  }

  private count(kind: PeerRecord['kind'], since = 0): number {
    return this.records.filter((record) => record.kind === kind && record.at >= since).length;
  }

  /** Waits until a process is in a body that has begun just now. */
  private async holder(): Promise<PeerProcess> {
    const since = machineTime();
    const find = () => {
      const last = this.records.filter(({ kind }) => kind === 'granted' || kind === 'release-asked').at(-1);
      if (last?.kind !== 'granted' || last.at < since) return undefined;
      return this.processes.find(({ spec, killed }) => spec.process === last.process && !killed);
    };
    await until(find, SERVED_WITHIN);
    return find() ?? this.holder();
  }

  /** Waits for some grants after the fault. */
  private async over(): Promise<void> {
    const since = machineTime();
    await until(() => this.count('granted', since) >= 3, SERVED_WITHIN).catch(() => this.notes.push('hardly served'));
  }

  async kill(): Promise<void> {
    await this.start(SHORT);
    const victim = await this.holder();
    await victim.kill();
    await this.over();
  }

  async stop(): Promise<void> {
    await this.start(SHORT);
    const victim = await this.holder();
    victim.freeze();
    await sleep(LEASE + 1_000);
    victim.thaw();
    await this.over();
  }

  async restart(): Promise<void> {
    await this.start(LONG);
    await this.holder();
    await this.redis!.kill();
    await sleep(200);
    await this.redis!.start();
    await this.over();
  }

  async loseReplies(): Promise<void> {
    await this.start(SHORT);
    for (let round = 0; round < 5; round++) {
      for (const proxy of this.proxies) proxy.dropReplies({ close: true });
      await sleep(200);
      for (const proxy of this.proxies) await proxy.heal();
      await sleep(300);
    }
    await this.over();
  }

  async halfOpen(): Promise<void> {
    const body = FIXED_LEASE.includes(this.library) ? LONG.body : LEASE + 1_500;
    await this.start({ ...LONG, body });
    const holder = await this.holder();
    const proxy = this.proxies[this.processes.indexOf(holder)];
    proxy.cutHalfOpen();
    await sleep(LEASE + 1_500);
    await proxy.heal();
    await this.over();
  }

  async flush(): Promise<void> {
    await this.start({ ...SHORT, body: 50 });
    const admin = this.redis!.client();
    for (let round = 0; round < 20; round++) {
      await admin.script('FLUSH');
      await sleep(50);
    }
    await this.over();
  }

  async failOver(): Promise<void> {
    await this.start(SHORT, { withSentinel: true });
    await this.holder();
    await this.sentinel!.killMaster();
    await this.over();
  }

  async setClock(): Promise<void> {
    this.clock = ServerClock.make();
    if (this.clock === undefined) throw new Error('The clock of Redis cannot be set here: there is no C compiler');
    await this.start(LONG, { env: this.clock.env });
    await this.holder();
    this.clock.set(5);
    await this.over();
  }

  async crowd(): Promise<void> {
    await this.start({ callers: 50, body: 5, pause: 0 });
    const since = machineTime();
    await sleep(6_000);
    const served = this.count('granted', since);
    this.notes.push(`${served} served in 6 s, ${this.count('refused', since)} refused`);
  }

  async leave(): Promise<void> {
    await this.start(IDLE);
    const [holder, ...others] = this.processes;
    holder.tell(`once ${LONG.body} ${WAIT}`);
    await until(() => this.count('granted') > 0);
    for (let i = 0; i < 20; i++) for (const process of others) process.tell('once 10 300');
    await until(() => this.count('release-asked') > 0, SERVED_WITHIN);
    others[0].tell(`once 10 ${WAIT}`);
    const ended = () => this.count('returned') + this.count('refused') + this.count('failed');
    await until(() => ended() === this.count('sent'), 30_000);
  }

  async observable(): Promise<void> {
    await this.start(IDLE);
    for (const process of this.processes) process.tell('observe 400');
    await until(() => this.count('returned') + this.count('refused') === PROCESSES, SERVED_WITHIN).catch(() => {});
  }

  async outlast(): Promise<void> {
    await this.start(IDLE);
    const [holder, ...others] = this.processes;
    holder.tell(`once ${2.5 * LEASE} ${WAIT}`);
    await until(() => this.count('granted') > 0);
    for (const process of others) process.tell(`once 100 ${WAIT}`);
    await until(() => this.count('returned') + this.count('refused') + this.count('failed') === PROCESSES, 30_000);
  }

  async block(): Promise<void> {
    await this.start(IDLE, { keepWhileBlocked: KEEP_WHILE_BLOCKED });
    await this.hold(`block ${LEASE + 1_500} ${WAIT}`);
  }

  async collect(): Promise<void> {
    await this.start(IDLE, { keepWhileBlocked: KEEP_WHILE_BLOCKED });
    await this.hold(`collect ${LEASE} ${WAIT}`);
    // A body may end early when it learns that its lock was lost.
    await until(() => this.count('collected') > 0);
    const [longest] = this.records.flatMap((record) => (record.kind === 'collected' ? [record.longest] : []));
    if (longest <= LEASE) throw new Error(`The longest collection took ${longest} ms`);
    this.notes.push(`a collection of ${longest.toFixed(0)} ms`);
  }

  /** The first process holds the lock for as long as this command takes, and the others want it meanwhile. */
  private async hold(command: string): Promise<void> {
    const [holder, ...others] = this.processes;
    holder.tell(command);
    await until(() => this.count('granted') > 0, 5 * 60_000);
    // Not for longer than a lease, because redlock would count the lock as lost when it gets it.
    for (const process of others) process.tell(`insist 100 ${LEASE / 2}`);
    await until(() => this.count('returned') + this.count('failed') === PROCESSES, 5 * 60_000);
    const of = (record: PeerRecord) => record.process === holder.spec.process;
    const end = this.records.find((record) => record.kind === 'release-asked' && of(record))!.at;
    this.isLost = this.records.some((record) => record.kind === 'granted' && !of(record) && record.at < end);
  }
}

const { prototype } = PeerRun;

const FAULT: Readonly<Record<Fault, (this: PeerRun) => Promise<void>>> = {
  'holder killed': prototype.kill,
  'holder stopped past its lease': prototype.stop,
  'Redis restarted without its data': prototype.restart,
  'replies lost': prototype.loseReplies,
  "the holder's link half-open past its lease": prototype.halfOpen,
  'SCRIPT FLUSH': prototype.flush,
  'master killed under Sentinel': prototype.failOver,
  "Redis's clock set forward by 5 s": prototype.setClock,
  '150 waiters': prototype.crowd,
  'waiters that leave': prototype.leave,
  'decorated method that returns an Observable': prototype.observable,
  'body longer than the lease': prototype.outlast,
  'event loop blocked past its lease': prototype.block,
  'long garbage collection': prototype.collect,
};
