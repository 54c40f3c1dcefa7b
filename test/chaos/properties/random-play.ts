import { BackendError } from '../../../lib/backends/lock-backend.js';
import { leftovers, NOTHING, type VirtualProcess } from '../../support/lock-world.js';
import { SeededRandom } from '../../support/seeded-random.js';
import type { Disturbance } from '../../support/watched/watched-backend.js';

/** Random calls in some processes, in virtual time. All of them have to end, and nothing may be left afterwards. */
export abstract class RandomPlay<Settings extends { readonly faults: boolean }> {
  readonly problems: string[] = [];
  /** How many calls ended in which way, or with which error. */
  readonly outcomes = new Map<string, number>();
  protected readonly chance: SeededRandom;
  protected readonly calls: Promise<void>[] = [];
  private readonly log: string[] = [];

  constructor(
    private readonly seed: number,
    protected readonly processes: readonly VirtualProcess[],
    protected readonly settings: Settings,
  ) {
    this.chance = new SeededRandom(seed);
  }

  /** Tries to get the locks. */
  protected abstract checkLocks(): Promise<void>;

  protected abstract stay(most: number): Promise<void>;

  /**
   * @param begin begins calls, which may begin others
   * @param longestLease how long faulty backends may leave a lock taken, in milliseconds
   */
  protected async play(begin: () => Promise<void>, longestLease: number): Promise<void> {
    const { processes, runtime } = this;
    const hear = (reason: unknown) => this.complain(`nobody handled ${reason}`);
    process.on('unhandledRejection', hear);
    try {
      await begin();
      // Calls are added meanwhile.
      for (const call of this.calls) await runtime.until(call);
      for (const { backend } of processes) backend.heal();
      await runtime.advance(longestLease);
      await this.checkLocks();
      await runtime.advance(6_000);
      for (const process of processes) expect(leftovers(process)).toEqual(NOTHING);
    } catch (error) {
      this.complain(String(error));
    } finally {
      process.off('unhandledRejection', hear);
    }
  }

  protected get runtime() {
    return this.processes[0].runtime;
  }

  /**
   * Lets commands and their answers be late, and with `faults` lost.
   *
   * @param refused how many of them do not arrive
   * @param unanswered how many of them do not arrive, or get no answer
   * @param latest by how many milliseconds they are late at most
   */
  protected disturbance(refused: number, unanswered: number, latest: number): Disturbance {
    return async (execute) => {
      const fate = this.settings.faults ? this.chance.next() : 1;
      if (fate < refused) {
        await this.stay(20);
        throw new BackendError('the connection is closed', 'unavailable', 'refused');
      }
      await this.stay(latest);
      const reply = await execute();
      await this.stay(latest);
      if (fate < unanswered) throw new BackendError('no answer in time', 'unavailable', 'unknown');
      return reply;
    };
  }

  protected count(outcome: string): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }

  protected note(event: string): void {
    this.log.push(`${this.runtime.monotonic().toFixed(1).padStart(8)} ${event}`);
  }

  protected complain(problem: string): void {
    this.problems.push([`seed ${this.seed}: ${problem}`, ...this.log].join('\n'));
  }
}
