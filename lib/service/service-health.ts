import type { BackendHealth } from '../backends/lock-backend.js';
import type { LockEngine } from '../engine/lock-engine.js';

/** The health of a lock service. See `LockService.health`. @publicApi */
export interface LockServiceHealth {
  /** Whether the backend answers and nothing else is wrong. */
  readonly healthy: boolean;
  /** The problems in words. Empty if there are none. */
  readonly problems: readonly string[];
  /** How long the backend took to answer, in milliseconds. Undefined if it did not answer. */
  readonly responseTime: number | undefined;
  /** Whether messages about releases arrive. Undefined if the service has not needed them yet. */
  readonly listening: boolean | undefined;
  /** How many held locks should have been renewed by now. */
  readonly lateRenewals: number;
  /** How many locks were lost within the last minute. */
  readonly recentLosses: number;
}

/** How long a loss is reported, in milliseconds. */
const RECENTLY = 60_000;
const MOST_LOSSES = 1_000;
/** A renewal counts as late when half of the lease and this many milliseconds more have passed. */
const TOLERANCE = 1_000;
/** How long a new connection for messages may take before it counts as a problem, in milliseconds. */
const SETTLING = 500;

/** Checks the health of a lock service. */
export class ServiceHealth {
  /** When locks were lost. */
  private losses: number[] = [];

  constructor(private readonly engine: LockEngine) {
    engine.on('lost', () => {
      this.losses = [...this.losses.slice(1 - MOST_LOSSES), engine.settings.runtime.monotonic()];
    });
  }

  async check(): Promise<LockServiceHealth> {
    const { runtime } = this.engine.settings;
    const started = runtime.monotonic();
    let failure: Error | undefined;
    const answer = await this.ping().catch((error: Error) => {
      failure = error;
    });
    const responseTime = failure === undefined ? Math.round(runtime.monotonic() - started) : undefined;
    const listening = answer?.listening === false ? await this.turn() : answer?.listening;
    const lateRenewals = this.lateRenewals();
    const recentLosses = this.losses.filter((at) => runtime.monotonic() - at < RECENTLY).length;
    const problems = [
      failure === undefined ? [] : failure.message,
      listening === false ? 'messages about releases do not arrive, so waiters may sleep longer' : [],
      lateRenewals > 0 ? `the renewals of ${lateRenewals} held locks are late` : [],
      recentLosses > 0 ? `${recentLosses} locks were lost within the last minute` : [],
    ].flat();
    return { healthy: problems.length === 0, problems, responseTime, listening, lateRenewals, recentLosses };
  }

  /** @throws LockUnavailableError when the backend does not answer */
  ping(what = 'health()'): Promise<BackendHealth> {
    const { inspector, settings } = this.engine;
    return inspector.askBackend(what, async () => (await settings.backend.ping?.()) ?? { listening: undefined });
  }

  private async turn(): Promise<boolean | undefined> {
    const { runtime } = this.engine.settings;
    await new Promise<void>((resolve) => {
      runtime.timer(SETTLING, resolve, 'keep-alive');
    });
    return (await this.ping().catch(() => undefined))?.listening;
  }

  private lateRenewals(): number {
    const { context } = this.engine;
    const isLate = ({ fixed, confirmed, validFor }: ReturnType<typeof context.heldLocks>[number]) =>
      !fixed && context.clock.age(confirmed) > validFor / 2 + TOLERANCE;
    return context.heldLocks().filter(isLate).length;
  }
}
