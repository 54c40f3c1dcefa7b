import { hasLine, type LockType } from '../../../lib/backends/lock-backend.js';

export interface Part {
  readonly key: string;
  readonly type: LockType;
  readonly owner: string;
}

export const isReadWrite = (type: LockType): boolean => type === 'read' || type === 'write';

/**
 * Who is woken by a change: all listeners of a channel, the client of one fair waiter, or of the first in line. `maybe`: only the clock,
 * which the model does not know, decides whether they are woken.
 */
export type Call =
  | { readonly key: string; readonly channel: 'plain' | 'readWrite'; readonly maybe?: true }
  | { readonly key: string; readonly head: string }
  | { readonly key: string; readonly first: string; readonly maybe?: true };

/** The state of one lock. */
class Lock {
  plain: string | undefined;
  writer: string | undefined;
  readonly readers = new Set<string>();
  /** All owners that were ever readers, because a backend does not remove an expired reader at once. */
  readonly everRead = new Set<string>();
  /** Fair waiters, in order. */
  readonly queue: string[] = [];
  /** Processes that wait in line, in order. */
  readonly line: string[] = [];
  /** Which of them want to read or to write. */
  readonly kinds = new Map<string, LockType>();
  /** Whether a release has left the lock free for listeners outside the line, and the line was not granted it since. */
  leftFree = false;

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

  /** @param listens whether somebody listens to the plain channel of this key, and so outside its line */
  constructor(private readonly listens: (key: string) => boolean = () => false) {}

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
  obstacles(part: Part, pastLine: boolean, waits = false): readonly string[] {
    const { key, type, owner } = part;
    const { plain, writer, readers, queue, line, kinds } = this.at(key);
    if (this.has(part)) return [];
    if (!isReadWrite(type)) {
      const holders = [plain, writer, ...readers].filter((holder) => holder !== undefined);
      if (holders.length > 0) return holders;
      const [first = owner] = type === 'fair' ? queue : waits ? line : [];
      return first === owner ? [] : [first];
    }
    if (plain !== undefined) return [plain];
    if (writer !== undefined) return writer === owner ? [] : [writer];
    if (type === 'write' && readers.size > 0) return [...readers];
    if (pastLine || (type === 'write' && !waits)) return [];
    const ahead = line.slice(0, line.includes(owner) ? line.indexOf(owner) : undefined);
    return ahead.filter((place) => type === 'write' || kinds.get(place) !== 'read').slice(0, 1);
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
    if (!isReadWrite(type)) return this.others(key);
    const { readers, writer } = this.at(key);
    // Beside other leases, the lock may end as late as before.
    const isAlone = type === 'read' ? readers.size === 1 && writer === undefined : !readers.has(owner);
    return isAlone ? this.readersAndWriters(key) : this.maybeReadersAndWriters(key);
  }

  release(part: Part): readonly Call[] {
    const { key, type } = part;
    this.lapse(part);
    if (type === 'fair') return this.headOrOthers(key);
    if (!isReadWrite(type)) return this.others(key);
    const lock = this.at(key);
    if (type === 'write' || lock.isFree) return this.readersAndWriters(key);
    // While other readers remain, nobody can enter when a reader leaves, but the lock may now expire earlier.
    return lock.writer === undefined ? this.maybeReadersAndWriters(key) : [];
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
    return { transferred: false, calls: this.readersAndWriters(from.key) };
  }

  /** Registers a waiter, if this type has registered waiters. */
  keepPlace({ key, type, owner }: Part): void {
    const { queue, line, kinds } = this.at(key);
    if (type === 'fair' && !queue.includes(owner)) queue.push(owner);
    else if (hasLine(type) && !line.includes(owner)) line.push(owner);
    if (isReadWrite(type)) kinds.set(owner, type);
  }

  hasPlace({ key, type, owner }: Part): boolean {
    const { queue, line } = this.at(key);
    return (hasLine(type) ? line : queue).includes(owner);
  }

  /** Removes the waiter silently. */
  forgetPlace({ key, type, owner }: Part): void {
    const { queue, line, kinds } = this.at(key);
    const order = hasLine(type) ? line : type === 'fair' ? queue : [];
    if (order.includes(owner)) order.splice(order.indexOf(owner), 1);
    if (line.length === 0) this.at(key).leftFree = false;
    if (hasLine(type)) kinds.delete(owner);
  }

  /**
   * A refresh may find that the waiter that had been woken has died: the next one is woken, or those of other types.
   */
  refreshed({ key, type }: Part): readonly Call[] {
    if (hasLine(type)) return this.hasRoom(key) ? this.serveLine(key) : [];
    return this.at(key).isFree ? this.headOrOthers(key) : [];
  }

  /** Who enters the line of a free lock lets its first place go first. */
  entered(part: Part, pastLine: boolean): readonly Call[] {
    const { key } = part;
    return this.at(key).isFree && this.obstacles(part, pastLine, true).length > 0 ? this.serveLine(key) : [];
  }

  removeWaiter(part: Part): readonly Call[] {
    const { key, type, owner } = part;
    // The lock may have been granted to a place in line.
    if (!this.hasPlace(part)) return hasLine(type) && !isReadWrite(type) && this.has(part) ? this.release(part) : [];
    const lock = this.at(key);
    const wrote = hasLine(type) && lock.kinds.get(owner) === 'write';
    const wasHead = (hasLine(type) ? lock.line : lock.queue)[0] === owner;
    this.forgetPlace(part);
    if (!hasLine(type)) return wasHead && lock.isFree ? this.headOrOthers(key) : [];
    const mayRead = wrote && lock.writer === undefined && lock.line.every((place) => lock.kinds.get(place) === 'read');
    const served = wasHead || this.hasRoom(key) ? this.serveLine(key) : [];
    return mayRead ? [{ key, channel: 'readWrite' }, ...served] : served;
  }

  forceRelease(key: string): readonly Call[] {
    const lock = this.at(key);
    lock.plain = lock.writer = undefined;
    lock.readers.clear();
    return [{ key, channel: 'readWrite' }, ...this.headOf(key), ...this.others(key)];
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
    const { queue, line, kinds } = this.at(key);
    return [
      ...queue.map((owner): Part => ({ key, type: 'fair', owner })),
      ...line.map((owner): Part => ({ key, type: kinds.get(owner) ?? 'reentrant', owner })),
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
    return this.at(key).queue.length > 0 ? this.headOf(key) : this.others(key);
  }

  /** Those who listen to the plain channel, and the first in line. */
  private others(key: string): readonly Call[] {
    return [{ key, channel: 'plain' }, ...this.serveLine(key, this.listens(key))];
  }

  /** Those who listen to the channel of readers and writers, and the line. */
  private readersAndWriters(key: string): readonly Call[] {
    return [{ key, channel: 'readWrite' }, ...this.serveLine(key, true)];
  }

  /** The same, of a lock that is held. */
  private maybeReadersAndWriters(key: string): readonly Call[] {
    return this.readersAndWriters(key).map((call) => ({ ...call, maybe: true }) as Call);
  }

  /** Whether the first in line may have the lock now. */
  private hasRoom(key: string): boolean {
    const { line, kinds, isFree } = this.at(key);
    return isFree || (this.mode(key) === 'read' && kinds.get(line[0]) === 'read');
  }

  /**
   * Grants a free lock to the first in line. If others listen outside the line, every second time it stays free. A writer
   * is only told, and so are all readers in front.
   */
  private serveLine(key: string, othersListen = false): readonly Call[] {
    const lock = this.at(key);
    const [first] = lock.line;
    if (first === undefined) return [];
    if (lock.kinds.get(first) === 'write') return [{ key, first }];
    if (lock.kinds.has(first)) {
      const end = lock.line.findIndex((place) => lock.kinds.get(place) !== 'read');
      return lock.line.slice(0, end < 0 ? undefined : end).map((place) => ({ key, first: place }));
    }
    if (lock.isFree) {
      lock.leftFree = othersListen && !lock.leftFree;
      if (!lock.leftFree) this.grant({ key, type: 'reentrant', owner: first });
    }
    return [{ key, first }];
  }

  /** Whether others may have a head start before the first in line. */
  isLeftFree(key: string): boolean {
    const { isFree, leftFree } = this.at(key);
    return isFree && leftFree;
  }

  private headOf(key: string): readonly Call[] {
    const [head] = this.at(key).queue;
    return head === undefined ? [] : [{ key, head }];
  }
}
