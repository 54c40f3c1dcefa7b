import { setTimeout as sleep } from 'node:timers/promises';
import type { Lease, LockService } from '../../../lib/core.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { machineTime } from '../history.js';
import type { FlightEvent } from './flight-history.js';

export interface FlightLoadOptions {
  readonly names: number;
  readonly callers: number;
  /** The `keepFor` of half of the calls, in milliseconds. The others have none. */
  readonly keepFor: number;
  /** How long one body in fifty runs, in milliseconds. The others run for up to 20. */
  readonly longBody: number;
  /** The longest pause of a caller between two calls, in milliseconds. Default 10; four times that between forgets. */
  readonly pause?: number;
  readonly seed: number;
}

/** Half of the calls are for one of this many names, so that callers compete. */
const HOT = 4;
/** How often a body records that its lease is held, in milliseconds. */
const STEP = 5;

/** Keeps single flights of one service busy, with `forgetResult` in between, and records the results. */
export class FlightLoad {
  private running = true;
  private calls = 0;
  private readonly random: SeededRandom;
  private readonly loops: Promise<void>[];

  constructor(
    private readonly process: string,
    private readonly locks: LockService,
    private readonly options: FlightLoadOptions,
    private readonly record: (at: number, event: FlightEvent) => void,
  ) {
    this.random = new SeededRandom(options.seed);
    this.loops = [...Array.from({ length: options.callers }, () => this.callAgain()), this.forgetAgain()];
  }

  /** Starts no new calls, and waits until all calls have been answered. */
  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
  }

  private async callAgain(): Promise<void> {
    const { random } = this;
    while (this.running) {
      const [call, name] = [this.nextCall(), this.pickName()];
      const keepFor = random.chance(0.5) ? this.options.keepFor : 0;
      this.note({ kind: 'asked', call, name, keepFor });
      try {
        const run = await this.locks.singleFlight(name, { keepFor }, (lease) => this.run(lease, call, name));
        this.note({ kind: 'answered', call, run });
      } catch (error) {
        this.note({ kind: 'answered', call, error: (error as Error).name });
      }
      await sleep(random.whole(0, this.options.pause ?? 10));
    }
  }

  private async run(lease: Lease, run: string, name: string): Promise<string> {
    const { random } = this;
    this.note({ kind: 'began', run, name, owner: lease.owner });
    const time = random.chance(0.02) ? this.options.longBody : random.whole(0, 20);
    for (let passed = 0; passed < time && this.running; passed += STEP) {
      await sleep(Math.min(STEP, time - passed));
      // Read before the check, because a lease that is held afterwards was held at that time, too.
      const at = machineTime();
      if (lease.held) this.record(at, { kind: 'held', run });
    }
    if (random.chance(0.05)) throw new RangeError('this body fails');
    return run;
  }

  private async forgetAgain(): Promise<void> {
    while (this.running) {
      const [call, name] = [this.nextCall(), this.pickName()];
      this.note({ kind: 'forgetting', call, name });
      try {
        await this.locks.forgetResult(name);
        this.note({ kind: 'forgot', call });
      } catch {
        // forgetResult() may or may not have been executed.
      }
      await sleep(this.random.whole(0, 4 * (this.options.pause ?? 10)));
    }
  }

  private note(event: FlightEvent): void {
    this.record(machineTime(), event);
  }

  private nextCall(): string {
    return `${this.process}/${++this.calls}`;
  }

  private pickName(): string {
    return `flight:${this.random.whole(1, this.random.chance(0.5) ? HOT : this.options.names)}`;
  }
}
