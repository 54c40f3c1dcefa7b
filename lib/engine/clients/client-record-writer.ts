import type { BackendError, ClientRecord, LockBackend } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { LockLogger } from '../events/lock-logger.js';
import { ReschedulableTimer } from '../reschedulable-timer.js';

/** Which application a lock service belongs to. */
export interface ClientIdentity {
  readonly application: string;
  readonly host: string;
  readonly pid: number;
  /** The application's version; `''`: not known. */
  readonly version: string;
}

/** How often the record is written, and how long it stays after that, in milliseconds. */
const HEARTBEAT = 10_000;
const LIFETIME = 3 * HEARTBEAT;
/** How often the present holds and waits are collected. */
const LOOK = 1_000;
/**
 * The pause per hold and wait. Collecting 100,000 takes some milliseconds, so a service with very many does it less
 * often.
 */
const LOOK_FOR_EACH = 0.1;
/** The record is written early where it does not mention what has lasted for a second; not more often than this. */
const SHORTEST_PAUSE = 2_000;

/** The holds and waits of a service at one moment. */
export type Stock = Pick<ClientRecord, 'held' | 'waiting' | 'longestWait' | 'holds' | 'waits'>;

interface PresenceSettings {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly clientId: string;
  /** Undefined: the service stays anonymous. */
  readonly identity?: ClientIdentity | undefined;
}

/**
 * Keeps this client's record in the backend, from which others see who holds and waits. It is made when the service has
 * held or waited for something for a moment, so that short work costs nothing, and refreshed until the service closes.
 */
export class ClientRecordWriter {
  private readonly heartbeat: ReschedulableTimer;
  private readonly since: number;
  private writtenAt: number | undefined;
  /** The contents of the latest record. */
  private mentioned = '';
  private resting = false;
  private closed = false;
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly settings: PresenceSettings,
    private readonly logger: LockLogger,
    private readonly takeStock: () => Stock,
  ) {
    const { runtime, backend, identity } = settings;
    this.heartbeat = new ReschedulableTimer(runtime, () => this.look());
    this.since = Math.round(runtime.wall());
    this.closed = backend.directory === undefined || identity === undefined;
  }

  /** A lock is held or waited for: collects it after this many milliseconds. */
  noticed(delay: number = LOOK): void {
    if (this.closed) return;
    if (!this.heartbeat.isScheduled) this.heartbeat.schedule(delay);
    else if (this.resting) this.heartbeat.bringForward(delay);
  }

  /** Removes the record; settles when that is done, or cannot be done. */
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

  private look(): void {
    const stock = this.takeStock();
    this.resting = stock.held + stock.waiting === 0;
    if (this.resting && this.writtenAt === undefined) return;
    const now = this.settings.runtime.monotonic();
    const age = now - (this.writtenAt ?? Number.NEGATIVE_INFINITY);
    const mentions = lasting(stock);
    if (age >= HEARTBEAT || (age >= SHORTEST_PAUSE && mentions !== this.mentioned)) {
      this.writtenAt = now;
      this.mentioned = mentions;
      this.writing = this.write(stock, LIFETIME);
    }
    this.heartbeat.schedule(this.resting ? HEARTBEAT - (now - (this.writtenAt as number)) : untilNextLook(stock));
  }

  private write(stock: Stock, lifetime: number): Promise<void> {
    const { backend, clientId, identity } = this.settings;
    const record = { ...(identity as ClientIdentity), clientId, since: this.since, ...stock };
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

function untilNextLook({ held, waiting }: Stock): number {
  return Math.min(HEARTBEAT, Math.max(LOOK, (held + waiting) * LOOK_FOR_EACH));
}

function lasting({ holds, waits }: Stock): string {
  const held = holds.filter(({ heldFor }) => heldFor >= LOOK).map(({ owner }) => owner);
  return [...held, ...waits.map(({ key }) => key)].sort().join('\n');
}
