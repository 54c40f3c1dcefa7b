import type { LockType } from '../../../lib/backends/lock-backend.js';

export interface Part {
  readonly key: string;
  readonly type: LockType;
  readonly owner: string;
}

export const isReadWrite = (type: LockType): boolean => type === 'read' || type === 'write';

/** Whom a change wakes: everybody on a channel, or the client of one fair waiter. */
export type Call =
  | { readonly key: string; readonly channel: 'plain' | 'readWrite' }
  | { readonly key: string; readonly head: string };

/** All that is to be known of one lock. */
class Lock {
  plain: string | undefined;
  writer: string | undefined;
  readonly readers = new Set<string>();
  /** Who was ever among them: a reader that lapsed is not gone at once from where it is kept. */
  readonly everRead = new Set<string>();
  /** Fair waiters, in their order. */
  readonly queue: string[] = [];
  /** Writers that wait. */
  readonly announced = new Set<string>();

  get isFree(): boolean {
    return this.plain === undefined && this.writer === undefined && this.readers.size === 0;
  }
}

/**
 * What locks are, without time, channels, tokens or storage: who holds what, who waits, and who is woken. Every backend does as this
 * does.
 */
export class LockModel {
  private readonly locks = new Map<string, Lock>();

  at(key: string): Lock {
    const lock = this.locks.get(key) ?? new Lock();
    this.locks.set(key, lock);
    return lock;
  }

  has({ key, type, owner }: Part): boolean {
    const lock = this.at(key);
    if (type === 'read') return lock.readers.has(owner);
    return (type === 'write' ? lock.writer : lock.plain) === owner;
  }

  /** Who may be named as standing in the way; nobody: it is granted. */
  obstacles(part: Part, pastWaitingWriters: boolean): readonly string[] {
    const { key, type, owner } = part;
    const { plain, writer, readers, queue, announced } = this.at(key);
    if (this.has(part)) return [];
    if (!isReadWrite(type)) {
      const holders = [plain, writer, ...readers].filter((holder) => holder !== undefined);
      if (holders.length > 0 || type !== 'fair' || queue.length === 0 || queue[0] === owner) return holders;
      return [queue[0]];
    }
    if (plain !== undefined) return [plain];
    if (type === 'write') return writer !== undefined ? [writer] : [...readers];
    if (writer !== undefined) return writer === owner ? [] : [writer];
    return pastWaitingWriters ? [] : [...announced];
  }

  grant(part: Part): void {
    const lock = this.at(part.key);
    if (part.type === 'read') {
      lock.readers.add(part.owner);
      lock.everRead.add(part.owner);
    } else if (part.type === 'write') lock.writer = part.owner;
    else lock.plain = part.owner;
    this.forgetPlace(part);
  }

  /** Removes the part silently, because its lease has ended. */
  lapse({ key, type, owner }: Part): void {
    const lock = this.at(key);
    if (type === 'read') lock.readers.delete(owner);
    else if (type === 'write') lock.writer = undefined;
    else lock.plain = undefined;
  }

  release(part: Part): readonly Call[] {
    const { key, type } = part;
    this.lapse(part);
    if (type === 'fair') return this.headOf(key);
    if (!isReadWrite(type)) return [{ key, channel: 'plain' }];
    // A reader that leaves others behind makes room for nobody.
    return type === 'write' || this.at(key).isFree ? [{ key, channel: 'readWrite' }] : [];
  }

  /** Gives whether it was transferred, and who is woken if not. Only of types that can be transferred. */
  transfer(from: Part, to: string): { readonly transferred: boolean; readonly calls: readonly Call[] } {
    const heir = { ...from, owner: to };
    if (!this.has(from)) return { transferred: this.has(heir), calls: [] };
    this.lapse(from);
    if (this.obstacles(heir, true).length === 0) {
      this.grant(heir);
      return { transferred: true, calls: [] };
    }
    return { transferred: false, calls: [{ key: from.key, channel: 'readWrite' }] };
  }

  /** Takes a place, where this type has one. */
  keepPlace({ key, type, owner }: Part): void {
    const { queue, announced } = this.at(key);
    if (type === 'fair' && !queue.includes(owner)) queue.push(owner);
    if (type === 'write') announced.add(owner);
  }

  hasPlace({ key, type, owner }: Part): boolean {
    const { queue, announced } = this.at(key);
    return type === 'fair' ? queue.includes(owner) : type === 'write' && announced.has(owner);
  }

  /** Removes the place silently. */
  forgetPlace({ key, type, owner }: Part): void {
    const { queue, announced } = this.at(key);
    if (type === 'fair' && queue.includes(owner)) queue.splice(queue.indexOf(owner), 1);
    if (type === 'write') announced.delete(owner);
  }

  /** A refresh finds out that the one before died, who was woken. */
  refreshed({ key, type }: Part): readonly Call[] {
    return type === 'fair' && this.at(key).isFree ? this.headOf(key) : [];
  }

  removeWaiter(part: Part): readonly Call[] {
    if (!this.hasPlace(part)) return [];
    const { key, type, owner } = part;
    const lock = this.at(key);
    const wasHead = lock.queue[0] === owner;
    this.forgetPlace(part);
    if (type === 'fair') return wasHead && lock.isFree ? this.headOf(key) : [];
    return lock.announced.size === 0 && lock.writer === undefined ? [{ key, channel: 'readWrite' }] : [];
  }

  forceRelease(key: string): readonly Call[] {
    const lock = this.at(key);
    lock.plain = lock.writer = undefined;
    lock.readers.clear();
    return [{ key, channel: 'plain' }, { key, channel: 'readWrite' }, ...this.headOf(key)];
  }

  /** All that hold something of this lock, as they would ask for it. */
  holders(key: string): readonly Part[] {
    const { plain, writer, readers } = this.at(key);
    const parts: Part[] = [...readers].map((owner) => ({ key, type: 'read', owner }));
    if (writer !== undefined) parts.push({ key, type: 'write', owner: writer });
    if (plain !== undefined) parts.push({ key, type: 'reentrant', owner: plain });
    return parts;
  }

  waiters(key: string): readonly Part[] {
    const { queue, announced } = this.at(key);
    return [
      ...queue.map((owner): Part => ({ key, type: 'fair', owner })),
      ...[...announced].map((owner): Part => ({ key, type: 'write', owner })),
    ];
  }

  mode(key: string): 'free' | 'exclusive' | 'read' | 'write' {
    const { plain, writer, isFree } = this.at(key);
    if (isFree) return 'free';
    if (plain !== undefined) return 'exclusive';
    return writer !== undefined ? 'write' : 'read';
  }

  owners(key: string): readonly string[] {
    const { plain, writer, readers } = this.at(key);
    return [...new Set([plain, writer, ...readers].filter((owner) => owner !== undefined))].sort();
  }

  private headOf(key: string): readonly Call[] {
    const [head] = this.at(key).queue;
    return head === undefined ? [] : [{ key, head }];
  }
}
