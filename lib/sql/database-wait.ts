import { type AcquireRequest, type BackendError, type Busy, momentOf } from '../backend.js';
import { Acquisition, type AcquisitionTools, type TakenLocks } from './acquisition.js';
import type { SessionClaim } from './session/session-pool.js';

/**
 * One request that waits in the database's queue, without a time limit. {@link stop} sends a cancel on the control
 * connection. A session to which a cancel was sent is always closed, because the cancel may arrive after its statement.
 */
export class DatabaseWait implements SessionClaim {
  private stopped = false;
  private settled = false;
  private isCancelled = false;
  /** The session with which it waits for the lock. */
  private blocked: Acquisition | undefined;

  /** @param lookUp reads what is known about the holder */
  constructor(
    private readonly tools: AcquisitionTools,
    private readonly request: AcquireRequest,
    private readonly onWait: (reason: Busy | BackendError) => void,
    private readonly lookUp: () => Promise<Busy>,
  ) {}

  /** @returns `undefined` when it was stopped */
  async run(): Promise<TakenLocks | undefined> {
    try {
      return await this.take();
    } catch (error) {
      if (this.stopped) return undefined;
      throw error;
    } finally {
      this.settled = true;
    }
  }

  /** Stops the wait. Locks that it has taken, or takes from now on, are released. */
  stop(): void {
    if (this.stopped || this.settled) return;
    this.stopped = true;
    this.tools.pool.withdraw(this);
    if (this.blocked !== undefined) this.cancel(this.blocked);
  }

  onFull(error: BackendError): void {
    if (!this.settled && !this.stopped) this.onWait(error);
  }

  private async take(): Promise<TakenLocks | undefined> {
    const { pool } = this.tools;
    const acquisition = await Acquisition.begin(this.tools, this.request, () => pool.take(this));
    if (acquisition === undefined) return undefined;
    try {
      return await this.takeLock(acquisition);
    } catch (error) {
      acquisition.abandon();
      throw error;
    }
  }

  private async takeLock(acquisition: Acquisition): Promise<TakenLocks | undefined> {
    const { runtime } = this.tools;
    const { key } = this.request;
    const isFree = await acquisition.tryLock(key);
    if (!isFree && !this.stopped) await this.block(acquisition);
    if (this.stopped) return this.giveUp(acquisition);
    // After a wait, the lease counts from the statement that is sent now, because the lock may have been granted long
    // ago.
    const confirmed = isFree ? acquisition.began : momentOf(runtime);
    const [noted] = await Promise.allSettled([
      acquisition.note(this.request),
      ...(isFree ? [] : [acquisition.touch()]),
    ]);
    if (this.stopped) {
      // It is recorded as the holder. If its session stayed alive, it would seem to hold the lock.
      acquisition.abandon();
      return undefined;
    }
    if (noted.status === 'rejected') throw noted.reason;
    if (acquisition.connection.ended !== undefined)
      throw this.tools.failures.toBackendError(acquisition.connection.ended);
    const { connection, transaction } = acquisition;
    return { connection, transaction, tokens: [noted.value], confirmed };
  }

  private async block(acquisition: Acquisition): Promise<void> {
    this.blocked = acquisition;
    this.reportHolder().catch(() => {}); // the holder remains unknown
    try {
      await acquisition.waitForLock(this.request.key, () => this.stopped);
    } finally {
      this.blocked = undefined;
    }
  }

  private async reportHolder(): Promise<void> {
    const holder = await this.lookUp();
    if (!this.settled && !this.stopped && this.blocked !== undefined) this.onWait(holder);
  }

  private cancel({ connection }: Acquisition): void {
    const { control, server } = this.tools;
    this.isCancelled = true;
    const { id } = connection;
    control
      .run((controlling) => server.cancel(controlling, id))
      // The statement cannot be ended in any other way.
      .catch(() => connection.destroy());
  }

  private async giveUp(acquisition: Acquisition): Promise<undefined> {
    if (this.isCancelled) acquisition.abandon();
    else await acquisition.undo();
    return undefined;
  }
}
