import { setTimeout as sleep } from 'node:timers/promises';
import type { Lease, LockService } from '../../../lib/core.js';
import { LockBusyError } from '../../../lib/engine/errors.js';
import type { LockLease } from '../../../lib/engine/lease/lock-lease.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { type History, machineTime } from '../history.js';
import { HistoryRecorder } from '../history-recorder.js';
import { PermitRecorder } from '../permit-recorder.js';
import { HOT, NAMES, type NameKind, nameOf, PERMITS, PLACES, PROCESSES, STEPS } from './names.js';

/** Methods with `@DistributedLock` that hold the lock `job:<n>` while they run a body. */
export interface DecoratedJobs {
  run(job: number, body: (lease: Lease) => Promise<void>): Promise<void>;
  skip(job: number, body: (lease: Lease) => Promise<void>): Promise<void>;
}

export interface LoadSettings {
  readonly callers: number;
  /** The longest pause of a caller between two calls, in milliseconds. */
  readonly pause: number;
  /** The leases of locks that are renewed, in milliseconds. */
  readonly lease: number;
  readonly seed: number;
  /** Which of the processes this is, from 0. */
  readonly slot: number;
}

type Errand = (this: SoakLoad) => Promise<void>;

/** Callers of one process that use names of all kinds. A history records the results. */
export class SoakLoad {
  private running = false;
  private loops: Promise<void>[] = [];
  private chapter = 0;
  private readonly random: SeededRandom;
  private readonly recorder: HistoryRecorder;
  private readonly permits: PermitRecorder;

  constructor(
    process: string,
    private readonly locks: LockService,
    private readonly jobs: DecoratedJobs,
    private readonly settings: LoadSettings,
    history: History,
  ) {
    this.random = new SeededRandom(settings.seed);
    this.recorder = new HistoryRecorder(history, process, locks, machineTime);
    this.permits = new PermitRecorder(this.recorder, machineTime, settings.lease * 0.99);
  }

  /** Sets up the latches of a chapter, for all processes. */
  async prepare(chapter: number): Promise<void> {
    for (let gate = 1; gate <= NAMES.gate; gate++) {
      const name = nameOf('gate', gate, chapter);
      await this.permits.step(name, 'set', STEPS, () => this.locks.getCountDownLatch(name).trySetCount(STEPS));
    }
  }

  begin(chapter: number): void {
    this.chapter = chapter;
    this.running = true;
    this.loops = Array.from({ length: this.settings.callers }, () => this.loop());
    this.loops.push(...this.openGates());
  }

  /** Starts no new calls, and waits until all calls have been answered. */
  async rest(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
  }

  /** Records how many permits each semaphore has, when nobody holds any. */
  async count(): Promise<void> {
    for (const kind of ['seat', 'pool'] as const)
      for (let number = 1; number <= NAMES[kind]; number++) {
        const lock = nameOf(kind, number, this.chapter);
        const semaphore =
          kind === 'seat' ? this.locks.getPermitExpirableSemaphore(lock) : this.locks.getSemaphore(lock);
        await semaphore.trySetPermits(PERMITS);
        this.recorder.add({ kind: 'permits-left', lock, available: await semaphore.availablePermits() });
      }
  }

  private async loop(): Promise<void> {
    while (this.running) {
      await this.draw().call(this);
      await sleep(this.random.whole(0, this.settings.pause));
    }
  }

  private draw(): Errand {
    return this.random.pick(ERRANDS);
  }

  private number(kind: NameKind): number {
    return this.random.whole(1, this.random.chance(0.5) ? HOT : NAMES[kind]);
  }

  private pick(kind: NameKind): string {
    return nameOf(kind, this.number(kind), this.chapter);
  }

  private stay(most = 30): Promise<void> {
    return sleep(this.random.whole(0, most));
  }

  private get waitTime(): number {
    return this.random.whole(200, 3_000);
  }

  async plain(): Promise<void> {
    const name = this.pick('plain');
    await this.recorder.withLock(name, { waitTime: this.waitTime }, async ({ call }) => {
      await this.stay();
      if (this.random.chance(0.2)) await this.recorder.withLock(name, {}, () => this.stay(), { within: call });
    });
  }

  /** Outlasts renewals. */
  async long(): Promise<void> {
    const body = () => this.stay(2 * this.settings.lease);
    await this.recorder.withLock(this.pick('plain'), { waitTime: this.waitTime }, body);
  }

  async tryOnce(): Promise<void> {
    const recorded = await this.recorder.tryAcquire(this.pick('plain'));
    if (recorded === undefined) return;
    await this.stay();
    await recorded.release();
  }

  /** Sometimes the work takes longer than the lease. */
  async fixed(): Promise<void> {
    const leaseTime = this.random.whole(200, 600);
    const recorded = await this.recorder.acquire(this.pick('plain'), { leaseTime, waitTime: this.waitTime });
    if (recorded === undefined) return;
    await sleep(leaseTime * this.random.between(0, 1.2));
    await recorded.release();
  }

  /** Waits until its signal ends the wait. */
  async abort(): Promise<void> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new Error('changed its mind')), this.random.whole(0, 200));
    const recorded = await this.recorder.acquire(this.pick('plain'), { signal: controller.signal });
    clearTimeout(timer);
    await this.stay();
    await recorded?.release();
  }

  async fair(): Promise<void> {
    await this.hold(this.pick('fair'), { type: 'fair' });
  }

  async read(): Promise<void> {
    await this.hold(this.pick('page'), { type: 'read' });
  }

  async write(): Promise<void> {
    await this.hold(this.pick('page'), { type: 'write' });
  }

  async fenced(): Promise<void> {
    await this.hold(this.pick('ledger'), { type: 'fenced' });
  }

  async several(): Promise<void> {
    const names = new Set(Array.from({ length: 3 }, () => this.pick('several')));
    await this.hold([...names], {});
  }

  async place(): Promise<void> {
    await this.hold(this.pick('place'), { permits: PLACES });
  }

  async newest(): Promise<void> {
    await this.hold(this.pick('newest'), { newest: true });
  }

  /** Detaches the lock, and adopts it under another owner. */
  async passOn(): Promise<void> {
    const recorded = await this.recorder.acquire(this.pick('ticket'), { waitTime: this.waitTime });
    if (recorded === undefined) return;
    await this.stay();
    const ticket = await this.recorder.detach(recorded, this.settings.lease);
    if (ticket === undefined || this.random.chance(0.1)) return;
    const adopted = await this.recorder.adopt(ticket);
    await this.stay();
    await adopted?.release();
  }

  async decorated(): Promise<void> {
    const job = this.number('job');
    await this.record(nameOf('job', job, 0), this.random.chance(0.3) ? 'skip' : 'run', job);
  }

  async seat(): Promise<void> {
    const name = this.pick('seat');
    if (!(await this.isSetUp(this.locks.getPermitExpirableSemaphore(name)))) return;
    const permits = this.random.whole(1, 2);
    const leaseTime = this.random.chance(0.3) ? this.settings.lease : undefined;
    const taken = await this.permits.lease(name, permits, leaseTime, { waitTime: this.random.whole(0, 300) });
    if (taken === undefined) return;
    await this.stay();
    await taken.release();
  }

  async pool(): Promise<void> {
    const name = this.pick('pool');
    if (!(await this.isSetUp(this.locks.getSemaphore(name)))) return;
    const taken = await this.permits.take(name, this.random.whole(1, 2), { waitTime: this.random.whole(0, 600) });
    if (taken === undefined) return;
    await this.stay();
    await taken.release();
  }

  async gate(): Promise<void> {
    await this.permits.pass(this.pick('gate'), { waitTime: this.random.whole(100, 2_000) });
  }

  private async hold(names: string | readonly string[], options: object): Promise<void> {
    const recorded = await this.recorder.acquire(names, { waitTime: this.waitTime, ...options });
    if (recorded === undefined) return;
    await this.stay();
    await recorded.release();
  }

  /** Records the call of a decorated method. */
  private async record(name: string, method: keyof DecoratedJobs, job: number): Promise<void> {
    const call = this.recorder.sent(name, { waitTime: method === 'skip' ? 0 : 3_000 });
    let isHeld = false;
    const done = this.jobs[method](job, async (held) => {
      isHeld = true;
      const lease = held as LockLease;
      this.recorder.granted(call, lease);
      await this.stay();
      this.recorder.releaseAsked(call, lease);
    });
    const error = await done.then(
      () => new LockBusyError('it was skipped', call, -1, undefined),
      (reason: Error) => reason,
    );
    if (isHeld) await this.recorder.released(call, done);
    else this.recorder.refused(call, error);
  }

  /** The first caller of a chapter, or after a loss of data, sets up the semaphore. */
  private async isSetUp(semaphore: { trySetPermits(permits: number): Promise<boolean> }): Promise<boolean> {
    return semaphore.trySetPermits(PERMITS).then(
      () => true,
      () => false,
    );
  }

  /** Each latch is opened by the steps of two processes, unless they are killed before. */
  private openGates(): Promise<void>[] {
    return Array.from({ length: NAMES.gate }, async (_, gate) => {
      if ((this.settings.slot + gate) % PROCESSES >= STEPS) return;
      const name = nameOf('gate', gate + 1, this.chapter);
      await sleep(this.random.whole(0, 3_000));
      const latch = this.locks.getCountDownLatch(name);
      await this.permits.step(name, 'counting', 1, () => latch.countDown(), 'counted');
    });
  }
}

/** What callers do, each as often as its weight. */
const ERRANDS: readonly Errand[] = (
  [
    ['plain', 12],
    ['long', 1],
    ['tryOnce', 4],
    ['fixed', 2],
    ['abort', 3],
    ['fair', 6],
    ['read', 5],
    ['write', 2],
    ['fenced', 4],
    ['several', 4],
    ['place', 6],
    ['newest', 3],
    ['passOn', 2],
    ['decorated', 6],
    ['seat', 3],
    ['pool', 3],
    ['gate', 2],
  ] as const
).flatMap(([name, weight]) => Array<Errand>(weight).fill(SoakLoad.prototype[name]));
