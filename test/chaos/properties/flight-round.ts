import type { FlightOptions } from '../../../lib/engine/flights/flight-terms.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import type { VirtualProcess } from '../../support/lock-world.js';
import { RandomPlay } from './random-play.js';

/** Also those of single flights: see WatchedBackend. */
const COMMANDS = ['acquire', 'release', 'renew', 'inspect', 'forceRelease'] as const;
/** How long faulty backends may leave a lock taken, in milliseconds. */
const LONGEST_LEASE = 40_000;

/** One run of the body, whose result is its number. */
interface Run {
  readonly began: number;
  readonly lease: Lease;
  /** When its result arrived anywhere. */
  arrived: number;
}

export interface RoundSettings {
  /** Commands and their answers are late or lost, and the clock of the machine is set. */
  readonly faults: boolean;
}

/**
 * Random calls of one single flight in up to three processes, some of which forget results or lock the same name. Runs
 * must not be at the same time, and no caller may get a result that is too old, or was forgotten before the call. All
 * calls have to end.
 */
export class FlightRound extends RandomPlay<RoundSettings> {
  private readonly runs: Run[] = [];
  private readonly running = new Set<Run>();
  /** When the latest call of forgetResult() that has ended was made. */
  private forgotten = -1;

  fly(): Promise<void> {
    const { chance, processes, runtime } = this;
    return this.play(async () => {
      for (const { backend } of processes) backend.disturb(this.disturbance(0.04, 0.1, 8), ...COMMANDS);
      for (let calls = chance.whole(3, 14); calls > 0; calls--) {
        await runtime.advance(chance.whole(0, 25));
        this.calls.push(this.act(chance.pick(processes)));
      }
    }, LONGEST_LEASE);
  }

  private async act({ locks }: VirtualProcess): Promise<void> {
    const { chance } = this;
    const what = chance.next();
    if (what > 0.16) return this.call(locks);
    const since = this.runtime.monotonic();
    const work =
      what < 0.12 ? locks.forgetResult('report') : locks.withLock('report', { waitTime: 100 }, () => this.stay(20));
    await work.then(
      () => {
        if (what < 0.12) this.forgotten = Math.max(this.forgotten, since);
        this.note(what < 0.12 ? `forgotten, as of ${since}` : 'locked');
      },
      (error) => this.note(String(error)),
    );
  }

  private async call(locks: VirtualProcess['locks']): Promise<void> {
    const { runs, forgotten } = this;
    const options = this.options();
    const began = this.runtime.monotonic();
    let own: number | undefined;
    this.note(`a call begins (${JSON.stringify(options)})`);
    try {
      const run = await locks.singleFlight('report', options, async (lease) => {
        own = runs.length;
        await this.run(lease);
        return own;
      });
      this.got(run, own, began - Number(options.keepFor), forgotten);
    } catch (error) {
      this.count((error as Error).name);
      this.note(String(error));
    }
  }

  private options(): FlightOptions {
    const { chance, runtime } = this;
    const keepFor = chance.pick([0, 0, 50, 200]);
    const leaseTime = chance.chance(0.3) ? chance.whole(1, 3) * 100 : undefined;
    const waitTime = chance.chance(0.2) ? chance.whole(0, 60) : undefined;
    if (!chance.chance(0.1)) return { keepFor, leaseTime, waitTime };
    const controller = new AbortController();
    runtime.timer(chance.whole(0, 60), () => controller.abort());
    return { keepFor, leaseTime, waitTime, signal: controller.signal };
  }

  private async run(lease: Lease): Promise<void> {
    const { chance, running, runs, runtime, settings } = this;
    const run: Run = { began: runtime.monotonic(), lease, arrived: Number.POSITIVE_INFINITY };
    const number = runs.push(run) - 1;
    this.note(`run ${number} begins`);
    if (lease.held && [...running].some((other) => other.lease.held)) this.complain(`run ${number} is not alone`);
    running.add(run);
    try {
      await this.stay(chance.chance(0.15) ? 450 : 40);
      if (settings.faults && chance.chance(0.1)) runtime.setWallClock(chance.pick([2_000, -2_000]));
      await this.stay(10);
      if (chance.chance(0.1)) throw new Error('the body failed');
    } finally {
      running.delete(run);
      this.note(`run ${number} ends`);
    }
  }

  /**
   * @param oldest results that had arrived anywhere before this time are too old
   * @param forgotten results of runs that began before this time are forgotten
   */
  private got(number: number, own: number | undefined, oldest: number, forgotten: number): void {
    const run = this.runs[number];
    run.arrived = Math.min(run.arrived, this.runtime.monotonic());
    this.note(`a call got ${number}`);
    this.count(own === undefined ? 'shared' : 'own');
    if (own !== undefined && own !== number) this.complain(`the caller of run ${own} got ${number}`);
    if (run.arrived < oldest - 1) this.complain(`the result ${number} is too old`);
    if (run.began < forgotten) this.complain(`the result ${number} was forgotten`);
  }

  protected async checkLocks(): Promise<void> {
    const { processes, runtime } = this;
    const lease = await runtime.until(processes[0].locks.tryAcquire('report'));
    if (lease === null) return this.complain('the lock is not free');
    await runtime.until(lease.release());
  }

  protected async stay(most: number): Promise<void> {
    const { chance, runtime } = this;
    await new Promise<void>((resolve) => void runtime.timer(chance.whole(0, most), resolve));
  }
}
