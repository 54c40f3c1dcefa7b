import { ExpiringMap, isPast, latestOf } from '../../../../lib/backends/expiring-map.js';
import { type HeldType, isReadWrite, type LockState } from '../../../../lib/backends/lock-requests.js';

/** The owners of one lock. All methods ignore owners whose lease has ended. Times are on the store's clock. */
export interface LockRecord {
  /** Whether it is held as a read/write lock. */
  readonly isReadWrite: boolean;
  /** Whether nobody holds the lock any more. */
  isEmpty(now: number): boolean;
  /** Whether this owner holds the lock as this type. */
  isHeldBy(owner: string, type: HeldType, now: number): boolean;
  /**
   * Whether this owner, which does not hold the lock, may acquire it beside those that do.
   *
   * @param permits how many may hold it, if the type is `permits`
   */
  admits(owner: string, type: HeldType, now: number, permits?: number): boolean;
  /** When the lease of an owner ends that {@link isHeldBy} accepts. */
  endOf(owner: string, type: HeldType, now: number): number;
  /** Adds an owner, or renews its lease. Only for an owner that {@link isHeldBy} or {@link admits} accepts. */
  set(owner: string, type: HeldType, deadline: number, now: number): void;
  /** Removes an owner that holds the lock as this type. */
  remove(owner: string, type: HeldType): void;
  /** Removes an owner that holds the lock as any type. */
  evict(owner: string): void;
  /** The owner whose lease waiters wait for, and when it ends: the last one, or the first one if n may hold the lock. */
  awaited(now: number): readonly [owner: string, deadline: number];
  state(now: number): Pick<LockState, 'mode' | 'owners'>;
}

/**
 * Whole milliseconds until a future deadline. Never 0, so that a waiter that sleeps this long does not wake too early.
 */
export function remaining(deadline: number, now: number): number {
  return Math.max(1, Math.ceil(deadline - now));
}

/**
 * The owner of a reentrant, fair or fenced lock. Under one name, these three types exclude each other, as in Redis.
 */
export class ExclusiveRecord implements LockRecord {
  readonly isReadWrite = false;

  constructor(
    private owner: string,
    private deadline: number,
  ) {}

  isEmpty(now: number): boolean {
    return this.deadline <= now;
  }

  isHeldBy(owner: string, type: HeldType): boolean {
    return this.owner === owner && !isReadWrite(type) && type !== 'permits';
  }

  admits(): boolean {
    return false;
  }

  endOf(): number {
    return this.deadline;
  }

  set(owner: string, _type: HeldType, deadline: number): void {
    this.owner = owner;
    this.deadline = deadline;
  }

  remove(): void {
    this.deadline = Number.NEGATIVE_INFINITY;
  }

  evict(): void {
    this.remove();
  }

  awaited(): readonly [owner: string, deadline: number] {
    return [this.owner, this.deadline];
  }

  state(now: number): Pick<LockState, 'mode' | 'owners'> {
    return { mode: 'exclusive', owners: [{ owner: this.owner, remaining: remaining(this.deadline, now) }] };
  }
}

/**
 * One writer, or any number of readers with a lease each, so that a reader that died frees only its own part. The
 * writer may also read (downgrade): then its write lease lasts at least as long as its read lease, as on Redisson's
 * layout, and it keeps its read lock when it releases the write lock.
 */
export class ReadWriteRecord implements LockRecord {
  readonly isReadWrite = true;
  private writer: string | undefined;
  private writerDeadline = 0;
  private readonly readers = new ExpiringMap(isPast);

  isEmpty(now: number): boolean {
    return this.writerAt(now) === undefined && this.readers.first(now) === undefined;
  }

  isHeldBy(owner: string, type: HeldType, now: number): boolean {
    if (type === 'write') return this.writerAt(now) === owner;
    return type === 'read' && this.readers.get(owner, now) !== undefined;
  }

  admits(owner: string, type: HeldType, now: number): boolean {
    if (!isReadWrite(type)) return false;
    const writer = this.writerAt(now);
    if (type === 'read') return writer === undefined || writer === owner;
    return writer === undefined && this.readers.first(now) === undefined;
  }

  endOf(owner: string, type: HeldType, now: number): number {
    return type === 'write' ? this.writerDeadline : (this.readers.get(owner, now) ?? 0);
  }

  set(owner: string, type: HeldType, deadline: number, now: number): void {
    if (type === 'read') {
      this.readers.set(owner, deadline, now);
      if (this.writerAt(now) === owner) this.writerDeadline = Math.max(this.writerDeadline, deadline);
    } else {
      this.writer = owner;
      this.writerDeadline = Math.max(deadline, this.readers.get(owner, now) ?? 0);
    }
  }

  remove(owner: string, type: HeldType): void {
    if (type === 'read') this.readers.delete(owner);
    else this.writer = undefined;
  }

  evict(owner: string): void {
    this.readers.delete(owner);
    if (this.writer === owner) this.writer = undefined;
  }

  awaited(now: number): readonly [owner: string, deadline: number] {
    const writer = this.writerAt(now);
    return writer === undefined ? latestOf(this.readers.alive(now)) : [writer, this.writerDeadline];
  }

  state(now: number): Pick<LockState, 'mode' | 'owners'> {
    const deadlines = new Map(this.readers.alive(now));
    const writer = this.writerAt(now);
    if (writer !== undefined) deadlines.set(writer, Math.max(this.writerDeadline, deadlines.get(writer) ?? 0));
    return {
      mode: writer === undefined ? 'read' : 'write',
      owners: [...deadlines].map(([owner, deadline]) => ({ owner, remaining: remaining(deadline, now) })),
    };
  }

  private writerAt(now: number): string | undefined {
    return this.writerDeadline > now ? this.writer : undefined;
  }
}

/** The owners of a lock that n may hold, with a lease each. */
export class PermitsRecord implements LockRecord {
  readonly isReadWrite = false;
  private readonly holders = new ExpiringMap(isPast);

  isEmpty(now: number): boolean {
    return this.holders.first(now) === undefined;
  }

  isHeldBy(owner: string, type: HeldType, now: number): boolean {
    return type === 'permits' && this.holders.get(owner, now) !== undefined;
  }

  admits(_owner: string, type: HeldType, now: number, permits = 0): boolean {
    return type === 'permits' && this.holders.alive(now).length < permits;
  }

  endOf(owner: string, _type: HeldType, now: number): number {
    return this.holders.get(owner, now) ?? 0;
  }

  set(owner: string, _type: HeldType, deadline: number, now: number): void {
    this.holders.set(owner, deadline, now);
  }

  remove(owner: string): void {
    this.holders.delete(owner);
  }

  evict(owner: string): void {
    this.remove(owner);
  }

  awaited(now: number): readonly [owner: string, deadline: number] {
    return this.holders.alive(now).reduce((first, entry) => (entry[1] < first[1] ? entry : first));
  }

  state(now: number): Pick<LockState, 'mode' | 'owners'> {
    const owners = this.holders.alive(now).sort(([, one], [, other]) => one - other);
    return {
      mode: 'permits',
      owners: owners.map(([owner, deadline]) => ({ owner, remaining: remaining(deadline, now) })),
    };
  }
}
