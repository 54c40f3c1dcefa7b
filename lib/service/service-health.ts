import { type BackendError, type BackendHealth, withReason } from '../backends/lock-backend.js';
import type { Refusal } from '../engine/ask/attempt.js';
import type { LockEngine } from '../engine/lock-engine.js';

/** The health of a lock service. See `LockService.health`. @publicApi */
export interface LockServiceHealth {
  /** Whether locks can be acquired and nothing else is wrong at the moment. */
  readonly healthy: boolean;
  /** The problems in words. Empty if there are none. */
  readonly problems: readonly string[];
  /** How long the backend took to answer, in milliseconds. Undefined if it did not answer. */
  readonly responseTime: number | undefined;
  /** Whether messages about releases arrive. Undefined if the service has not needed them yet. */
  readonly listening: boolean | undefined;
  /** How many held locks should have been renewed by now. */
  readonly lateRenewals: number;
  /** How many locks were lost within the last minute. This says nothing about whether locks can be acquired now. */
  readonly recentLosses: number;
  /** Why the backend last refused a lock, if that was within the last minute. */
  readonly lastRefusal: string | undefined;
}

/** How long a loss or a refusal is reported, in milliseconds. */
const RECENTLY = 60_000;
const MOST_LOSSES = 1_000;
/** A renewal counts as late when half of the lease and this many milliseconds more have passed. */
const TOLERANCE = 1_000;
/** How long a new connection for messages may take before it counts as a problem, in milliseconds. */
const SETTLING = 500;

/**
 * The name of the lock that health() acquires. It is the same in all processes, because databases keep a row for each
 * name.
 */
export const PROBE_NAME = 'nestjs-redis-lock:health';
/** How long the result of a probe is reused, and how long a refusal of another lock counts, in milliseconds. */
const PROBE_INTERVAL = 10_000;
/** The same while something was refused, so that a service is ready as soon as locks are granted again. */
const INTERVAL_IN_TROUBLE = 1_000;
/** When the probe's lock becomes free if its release does not arrive, in milliseconds. */
const PROBE_LEASE = 2_000;

/** Checks the health of a lock service. */
export class ServiceHealth {
  /** When locks were lost. */
  private losses: number[] = [];
  /** The last probe. It resolves to why no lock could be acquired. */
  private probe: { readonly at: number; readonly failure: Promise<BackendError | undefined> } | undefined;

  constructor(private readonly engine: LockEngine) {
    engine.observe('lost', () => {
      this.losses = [...this.losses.slice(1 - MOST_LOSSES), engine.settings.runtime.monotonic()];
    });
  }

  async check(): Promise<LockServiceHealth> {
    const { services, settings } = this.engine;
    const { runtime } = settings;
    const started = runtime.monotonic();
    let failure: Error | undefined;
    const probed = services.admission.isEnding ? undefined : this.probed();
    const answer = await this.ping().catch((error: Error) => {
      failure = error;
    });
    const responseTime = failure === undefined ? Math.round(runtime.monotonic() - started) : undefined;
    const listening = answer?.listening === false ? await this.turn() : answer?.listening;
    const unlockable = await probed;
    // When the backend answers again, that is seen at once.
    if (failure !== undefined) this.probe = undefined;
    const lateRenewals = this.lateRenewals();
    const recentLosses = this.losses.filter((at) => runtime.monotonic() - at < RECENTLY).length;
    const refusal = this.refusal();
    const problems = [
      services.admission.isEnding ? 'the lock service is shutting down' : [],
      failure?.message ?? (unlockable && `no lock can be acquired: ${unlockable.message}`) ?? refusal?.problem ?? [],
      listening === false ? 'messages about releases do not arrive, so waiters may sleep longer' : [],
      services.standby?.problem ?? [],
      lateRenewals > 0 ? `the renewals of ${lateRenewals} held locks are late` : [],
    ].flat();
    const healthy = problems.length === 0;
    return {
      healthy,
      problems,
      responseTime,
      listening,
      lateRenewals,
      recentLosses,
      lastRefusal: refusal?.text,
    };
  }

  /** Never rejects. */
  async warnIfDenied(): Promise<void> {
    const failure = await this.acquireProbe().catch(() => undefined);
    if (failure?.kind !== 'denied' || this.engine.isEnding) return;
    this.engine.warn(
      `No lock can be acquired: ${failure.message}. The command doctor (npx nestjs-redis-lock doctor) names every right that is missing`,
    );
  }

  /** @throws LockUnavailableError when the backend does not answer */
  ping(what = 'health()'): Promise<BackendHealth> {
    const { inspector, settings } = this.engine;
    return inspector.askBackend(what, async () => (await settings.backend.ping?.()) ?? { listening: undefined });
  }

  private probed(): Promise<BackendError | undefined> {
    const { pendingAttempts } = this.engine.services;
    const { failedProbe, refusal } = pendingAttempts;
    const now = this.engine.settings.runtime.monotonic();
    const isInTrouble = failedProbe !== undefined || refusal?.isOver === false;
    const isOld = (at: number) => now - at >= (isInTrouble ? INTERVAL_IN_TROUBLE : PROBE_INTERVAL);
    if (this.probe === undefined || failedProbe?.isOver === true || isOld(this.probe.at)) {
      pendingAttempts.failedProbe = undefined;
      this.probe = { at: now, failure: this.tryToLock(now) };
    }
    return this.probe.failure;
  }

  /** Notes the outcome of a probe: what it was refused counts until the next grant, and its own grant is one as well. */
  private async tryToLock(at: number): Promise<BackendError | undefined> {
    const { pendingAttempts } = this.engine.services;
    const failure = await this.acquireProbe();
    const { refusal } = pendingAttempts;
    if (failure !== undefined) pendingAttempts.failedProbe = { isOver: false };
    else if (refusal !== undefined && refusal.at <= at && this.isRefuted(refusal)) refusal.isOver = true;
    return failure;
  }

  /**
   * Whether the probe's lock shows that the refused one would be granted, too. Rights to other names say nothing about
   * the name that was refused, and a node of a cluster nothing about another.
   */
  private isRefuted({ key, error }: Refusal): boolean {
    const { health } = this.engine.settings.backend;
    return error.kind === 'unavailable' && health?.node(key) === health?.node(this.probeKey);
  }

  private get probeKey(): string {
    return this.engine.settings.keyPrefix + PROBE_NAME;
  }

  /**
   * Acquires and releases a lock. It asks the backend directly, so there are neither events nor anything that a
   * shutdown waits for. That another process holds the lock is as good an answer as the lock itself.
   */
  private async acquireProbe(): Promise<BackendError | undefined> {
    const { services, settings } = this.engine;
    const { backend } = settings;
    const probe = { key: this.probeKey, type: 'reentrant', owner: services.newOwner() } as const;
    let failure: BackendError | undefined;
    try {
      const reply = await backend.acquire({ ...probe, leaseTime: PROBE_LEASE, reserve: 0, waiterTimeout: 0 });
      if (!reply.acquired) return undefined;
    } catch (error) {
      failure = withReason(backend, error as BackendError);
    }
    if (failure?.outcome !== 'refused') await backend.release(probe).catch(() => {});
    return failure;
  }

  /** The last lock of a caller that the backend refused. It is a problem until it grants one again. */
  private refusal(): { readonly text: string; readonly problem: string | undefined } | undefined {
    const { services, settings } = this.engine;
    const { refusal } = services.pendingAttempts;
    if (refusal === undefined) return undefined;
    const ago = settings.runtime.monotonic() - refusal.at;
    if (ago >= RECENTLY) return undefined;
    const text = `${withReason(settings.backend, refusal.error).message} (${Math.round(ago / 1_000)} s ago)`;
    const isProblem = !refusal.isOver && ago < PROBE_INTERVAL;
    return { text, problem: isProblem ? `a lock was refused: ${text}` : undefined };
  }

  private async turn(): Promise<boolean | undefined> {
    const { runtime } = this.engine.settings;
    await new Promise<void>((resolve) => {
      runtime.timer(SETTLING, resolve, 'keep-alive');
    });
    return (await this.ping().catch(() => undefined))?.listening;
  }

  private lateRenewals(): number {
    const { services } = this.engine;
    const isLate = ({ fixed, confirmed, validFor }: ReturnType<typeof services.heldLocks>[number]) =>
      !fixed && services.clock.age(confirmed) > validFor / 2 + TOLERANCE;
    return services.heldLocks().filter(isLate).length;
  }
}
