import type { BackendError, ClientRecord, LockBackend } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { ClientIdentity } from '../describe-holder.js';
import type { LockLogger } from '../events/lock-logger.js';
import { ReschedulableTimer } from '../time/reschedulable-timer.js';

/** How often the record is written, and how long it is kept without being rewritten, in milliseconds. */
const HEARTBEAT = 10_000;
const LIFETIME = 3 * HEARTBEAT;
/** How often the present holds and waits are checked. */
const CHECK_INTERVAL = 1_000;
/**
 * What each hold and wait adds to the pause between two checks, in milliseconds. Checking 100,000 of them takes a few
 * milliseconds, so a very busy service checks less often.
 */
const INTERVAL_FOR_EACH = 0.1;
/**
 * A record that lacks a hold or wait that has lasted for a second is rewritten early, but not within this time after it
 * was last written, in milliseconds.
 */
const SHORTEST_PAUSE = 2_000;

/** The holds and waits of a service at one moment. */
export type RecordContents = Pick<ClientRecord, 'held' | 'waiting' | 'longestWait' | 'holds' | 'waits'>;

interface PresenceSettings {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly clientId: string;
  /** Undefined if the service writes no record. */
  readonly identity?: ClientIdentity | undefined;
}

/**
 * Keeps this client's record in the backend, which shows other processes what this client holds and waits for. The
 * record is created once the service has held or waited for something for a moment, so that short work costs nothing.
 * It is refreshed until the service closes.
 */
export class ClientRecordWriter {
  private readonly heartbeat: ReschedulableTimer;
  private readonly since: number;
  private writtenAt: number | undefined;
  /** The holds and waits that the latest record mentions. */
  private mentioned = '';
  private resting = false;
  private closed = false;
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly settings: PresenceSettings,
    private readonly logger: LockLogger,
    private readonly contentsNow: () => RecordContents,
  ) {
    const { runtime, backend, identity } = settings;
    this.heartbeat = new ReschedulableTimer(runtime, () => this.check());
    this.since = Math.round(runtime.wall());
    this.closed = backend.directory === undefined || identity === undefined;
  }

  /** Schedules a check after `delay` milliseconds, because something is held or waited for. */
  noticed(delay: number = CHECK_INTERVAL): void {
    if (this.closed) return;
    if (!this.heartbeat.isScheduled) this.heartbeat.schedule(delay);
    else if (this.resting) this.heartbeat.bringForward(delay);
  }

  /** Removes the record. Settles when that is done or has failed. */
  async leave(): Promise<void> {
    if (this.closed) return;
    this.close();
    if (this.writtenAt === undefined) return;
    await this.writing;
    await this.write({ held: 0, waiting: 0, longestWait: 0, holds: [], waits: [] }, 0);
  }

  close(): void {
    this.closed = true;
    this.heartbeat.cancel();
  }

  private check(): void {
    const contents = this.contentsNow();
    this.resting = contents.held + contents.waiting === 0;
    if (this.resting && this.writtenAt === undefined) return;
    const now = this.settings.runtime.monotonic();
    const age = now - (this.writtenAt ?? Number.NEGATIVE_INFINITY);
    const mentions = lasting(contents);
    if (age >= HEARTBEAT || (age >= SHORTEST_PAUSE && mentions !== this.mentioned)) {
      this.writtenAt = now;
      this.mentioned = mentions;
      this.writing = this.write(contents, LIFETIME);
    }
    this.heartbeat.schedule(this.resting ? HEARTBEAT - (now - (this.writtenAt as number)) : untilNextCheck(contents));
  }

  private write(contents: RecordContents, lifetime: number): Promise<void> {
    const { backend, clientId, identity } = this.settings;
    const record = { ...(identity as ClientIdentity), clientId, since: this.since, ...contents };
    const written = backend.directory?.writeClient(record, lifetime) ?? Promise.resolve();
    return written.catch((error: BackendError) => {
      if (error.kind !== 'denied' || this.closed) return;
      this.close();
      this.logger.warn(
        `The record of this client cannot be written, so others do not see who holds its locks: ${error.message}`,
      );
    });
  }
}

function untilNextCheck({ held, waiting }: RecordContents): number {
  return Math.min(HEARTBEAT, Math.max(CHECK_INTERVAL, (held + waiting) * INTERVAL_FOR_EACH));
}

function lasting({ holds, waits }: RecordContents): string {
  const held = holds.filter(({ heldFor }) => heldFor >= CHECK_INTERVAL).map(({ owner }) => owner);
  return [...held, ...waits.map(({ key }) => key)].sort().join('\n');
}
