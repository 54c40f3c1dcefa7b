import type { LockType } from '../../../lib/backends/lock-backend.js';

export interface Part {
  readonly key: string;
  readonly type: LockType;
  readonly owner: string;
}

export const isReadWrite = (type: LockType): boolean => type === 'read' || type === 'write';

/**
 * Who is woken by a change: all listeners of a channel, or the client of one fair waiter. `maybe`: only the clock,
 * which the model does not know, decides whether they are woken.
 */
export type Call =
  | { readonly key: string; readonly channel: 'plain' | 'readWrite'; readonly maybe?: true }
  | { readonly key: string; readonly head: string };

/** The state of one lock. */
class Lock {
  plain: string | undefined;
  writer: string | undefined;
  readonly readers = new Set<string>();
  /** All owners that were ever readers, because a backend does not remove an expired reader at once. */
  readonly everRead = new Set<string>();
  /** Fair waiters, in order. */
  readonly queue: string[] = [];
  /** Waiting writers. */
  readonly announced = new Set<string>();

  get isFree(): boolean {
    return this.plain === undefined && this.writer === undefined && this.readers.size === 0;
  }
}

/**
 * A model of locks without time, channels, tokens or storage: who holds what, who waits, and who is woken. Every
 * backend has to behave like it.
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

  /** The owners that a busy answer may name. If there are none, the request is granted. */
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

  /** Who is woken when the part's lease becomes shorter: as by its release, because they would sleep until its end. */
  shortened(part: Part): readonly Call[] {
    const { key, type, owner } = part;
    if (!this.has(part)) return [];
    if (type === 'fair') return this.headOrOthers(key);
    if (!isReadWrite(type)) return [{ key, channel: 'plain' }];
    const { readers, writer } = this.at(key);
    // Beside other leases, the lock may end as late as before.
    const isAlone = type === 'read' ? readers.size === 1 && writer === undefined : !readers.has(owner);
    return [isAlone ? { key, channel: 'readWrite' } : { key, channel: 'readWrite', maybe: true }];
  }

  release(part: Part): readonly Call[] {
    const { key, type } = part;
    this.lapse(part);
    if (type === 'fair') return this.headOrOthers(key);
    if (!isReadWrite(type)) return [{ key, channel: 'plain' }];
    const lock = this.at(key);
    if (type === 'write' || lock.isFree) return [{ key, channel: 'readWrite' }];
    // While other readers remain, nobody can enter when a reader leaves, but the lock may now expire earlier.
    return lock.writer === undefined ? [{ key, channel: 'readWrite', maybe: true }] : [];
  }

  /** Returns whether the lock was transferred and, if not, who is woken. Only for types that can be transferred. */
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

  /** Registers a waiter, if this type has registered waiters. */
  keepPlace({ key, type, owner }: Part): void {
    const { queue, announced } = this.at(key);
    if (type === 'fair' && !queue.includes(owner)) queue.push(owner);
    if (type === 'write') announced.add(owner);
  }

  hasPlace({ key, type, owner }: Part): boolean {
    const { queue, announced } = this.at(key);
    return type === 'fair' ? queue.includes(owner) : type === 'write' && announced.has(owner);
  }

  /** Removes the waiter silently. */
  forgetPlace({ key, type, owner }: Part): void {
    const { queue, announced } = this.at(key);
    if (type === 'fair' && queue.includes(owner)) queue.splice(queue.indexOf(owner), 1);
    if (type === 'write') announced.delete(owner);
  }

  /**
   * A refresh may find that the waiter that had been woken has died: the next one is woken, or those of other types.
   */
  refreshed({ key, type }: Part): readonly Call[] {
    return type === 'fair' && this.at(key).isFree ? this.headOrOthers(key) : [];
  }

  removeWaiter(part: Part): readonly Call[] {
    if (!this.hasPlace(part)) return [];
    const { key, type, owner } = part;
    const lock = this.at(key);
    const wasHead = lock.queue[0] === owner;
    this.forgetPlace(part);
    if (type === 'fair') return wasHead && lock.isFree ? this.headOrOthers(key) : [];
    return lock.announced.size === 0 && lock.writer === undefined ? [{ key, channel: 'readWrite' }] : [];
  }

  forceRelease(key: string): readonly Call[] {
    const lock = this.at(key);
    lock.plain = lock.writer = undefined;
    lock.readers.clear();
    return [{ key, channel: 'plain' }, { key, channel: 'readWrite' }, ...this.headOf(key)];
  }

  /** All holders of this lock, with the type that they asked for. */
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

  /** The head of the queue or, if nobody is in it, waiters of other types. */
  private headOrOthers(key: string): readonly Call[] {
    return this.at(key).queue.length > 0 ? this.headOf(key) : [{ key, channel: 'plain' }];
  }

  private headOf(key: string): readonly Call[] {
    const [head] = this.at(key).queue;
    return head === undefined ? [] : [{ key, head }];
  }
}
