import { isReadWrite, type LockState, type LockType } from '../lock-requests.js';
import { ExpiringMap, isPast, latestOf } from './expiring-map.js';
import { type LockRecord, remaining } from './lock-record.js';

/**
 * One writer, or any number of readers with a lease each, so that a reader that died frees only its own part. The writer may also read
 * (downgrade): then its write lease lasts at least as long as its read lease, as on Redisson's layout, and it goes on reading when it
 * releases the write lock.
 */
export class ReadWriteRecord implements LockRecord {
  private writer: string | undefined;
  private writerDeadline = 0;
  private readonly readers = new ExpiringMap(isPast);

  isEmpty(now: number): boolean {
    return this.writerAt(now) === undefined && this.readers.first(now) === undefined;
  }

  isHeldBy(owner: string, type: LockType, now: number): boolean {
    if (type === 'write') return this.writerAt(now) === owner;
    return type === 'read' && this.readers.get(owner, now) !== undefined;
  }

  admits(owner: string, type: LockType, now: number): boolean {
    if (!isReadWrite(type)) return false;
    const writer = this.writerAt(now);
    if (type === 'read') return writer === undefined || writer === owner;
    return writer === undefined && this.readers.first(now) === undefined;
  }

  set(owner: string, type: LockType, deadline: number, now: number): void {
    if (type === 'read') {
      this.readers.set(owner, deadline, now);
      if (this.writerAt(now) === owner) this.writerDeadline = Math.max(this.writerDeadline, deadline);
    } else {
      this.writer = owner;
      this.writerDeadline = Math.max(deadline, this.readers.get(owner, now) ?? 0);
    }
  }

  remove(owner: string, type: LockType): void {
    if (type === 'read') this.readers.delete(owner);
    else this.writer = undefined;
  }

  evict(owner: string): void {
    this.readers.delete(owner);
    if (this.writer === owner) this.writer = undefined;
  }

  lastToExpire(now: number): readonly [owner: string, deadline: number] {
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
