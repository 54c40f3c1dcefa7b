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
  /** Whether somebody was told of the free lock, and has precedence for a while. */
  told = false;

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

  /**
   * @param listens whether somebody listens to the plain channel of this key, and so outside its line
   * @param isHeard whether the client of this owner listens for what concerns its place in the line
   */
  constructor(
    private readonly listens: (key: string) => boolean = () => false,
    private readonly isHeard: (key: string, owner: string) => boolean = () => true,
  ) {}

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
      const [first = owner] = type === 'fair' ? queue : [];
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
    if (!isReadWrite(type)) return [{ key, channel: 'plain' }, ...this.tellLine(key)];
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
    if (line.length === 0) this.at(key).leftFree = this.at(key).told = false;
    if (hasLine(type)) kinds.delete(owner);
  }

  /**
   * A refresh may find that the waiter that had been woken has died: the next one is woken, or those of other types.
   */
  refreshed({ key, type }: Part): readonly Call[] {
    if (hasLine(type)) return this.serve(key).calls;
    return this.at(key).isFree ? this.headOrOthers(key) : [];
  }

  /**
   * Who enters the line of a free lock lets those go first whose turn it is.
   *
   * @returns the owners that a busy answer may name, and who is woken
   */
  entered(part: Part, pastLine: boolean): { readonly obstacles: readonly string[]; readonly calls: readonly Call[] } {
    const { key, type, owner } = part;
    const lock = this.at(key);
    const obstacles = this.obstacles(part, pastLine, true);
    const isSettled = this.has(part) || !lock.isFree || (isReadWrite(type) && obstacles.length === 0);
    if (isSettled) return { obstacles, calls: [] };
    const { calls, first } = this.serve(key, undefined, owner);
    if (first === undefined) lock.told = false;
    if (!lock.isFree) return { obstacles: this.obstacles(part, pastLine, true), calls };
    return { obstacles: first === undefined ? [] : [first], calls };
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
    const served = this.serve(key).calls;
    return mayRead ? [{ key, channel: 'readWrite' }, ...served] : served;
  }

  forceRelease(key: string): readonly Call[] {
    const lock = this.at(key);
    lock.plain = lock.writer = undefined;
    lock.readers.clear();
    return [{ key, channel: 'readWrite' }, ...this.headOf(key), ...this.outsiders(key)];
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
    return this.at(key).queue.length > 0 ? this.headOf(key) : this.outsiders(key);
  }

  /** Those who listen to the plain channel, and the line, to which the lock is granted. */
  private others(key: string): readonly Call[] {
    return [{ key, channel: 'plain' }, ...this.serve(key, this.listens(key)).calls];
  }

  /** The same, but the line is only told. */
  private outsiders(key: string): readonly Call[] {
    return [{ key, channel: 'plain' }, ...this.tellLine(key, this.listens(key))];
  }

  /** Those who listen to the channel of readers and writers, and the line. */
  private readersAndWriters(key: string): readonly Call[] {
    return [{ key, channel: 'readWrite' }, ...this.tellLine(key, false)];
  }

  /** The same, of a lock that is held. */
  private maybeReadersAndWriters(key: string): readonly Call[] {
    return this.readersAndWriters(key).map((call) => ({ ...call, maybe: true }) as Call);
  }

  /** The first place that may have the lock and whose client listens, and whom to tell otherwise. */
  private nextPlace(key: string): { readonly next?: string; readonly first?: string } {
    const { line, kinds } = this.at(key);
    const mode = this.mode(key);
    const fitting = line.filter((place) => mode === 'free' || (mode === 'read' && kinds.get(place) === 'read'));
    const next = fitting.find((place) => this.isHeard(key, place));
    return { next, first: next ?? line[0] };
  }

  /**
   * Grants a lock to the first in line whose client listens. If others listen outside the line, every second time it
   * stays free. Readers and writers are only told.
   *
   * @param othersListen undefined: nothing was released
   * @returns who goes first; undefined: nobody before the asker, for which the lock has room
   */
  private serve(
    key: string,
    othersListen?: boolean,
    asker?: string,
  ): { readonly calls: readonly Call[]; readonly first?: string } {
    const lock = this.at(key);
    const { next, first } = this.nextPlace(key);
    if (first === undefined || (asker !== undefined && next === asker)) return { calls: [] };
    const { isFree } = lock;
    const isLeft = isFree && this.leaveToOthers(key, othersListen);
    if (next === undefined && !(isFree && (isLeft || asker === undefined))) return { calls: [] };
    if (next === undefined || lock.kinds.has(next) || isLeft) {
      const isOver = asker !== undefined && next !== undefined && lock.told && lock.line.includes(asker);
      if (isOver) return { calls: [] };
      return { calls: this.tell(key, first, isFree || next !== undefined, isLeft, asker), first };
    }
    lock.leftFree = lock.told = false;
    this.grant({ key, type: 'reentrant', owner: next });
    return { calls: [{ key, first: next }], first: next };
  }

  /** Tells the line of a lock that has changed or become free. */
  private tellLine(key: string, othersListen?: boolean): readonly Call[] {
    const { first } = this.nextPlace(key);
    const { isFree } = this.at(key);
    return first === undefined ? [] : this.tell(key, first, isFree, isFree && this.leaveToOthers(key, othersListen));
  }

  /** A place, the readers right behind a reader, and the next place, because the first may not come. */
  private tell(key: string, first: string, canAsk: boolean, isLeft: boolean, asker?: string): readonly Call[] {
    const lock = this.at(key);
    if (canAsk && !isLeft) lock.told = true;
    const reads = (place: string) => lock.kinds.get(place) === 'read';
    const others = lock.line.slice(lock.line.indexOf(first) + 1);
    const end = others.findIndex((place) => !reads(first) || !reads(place));
    const readers = others.slice(0, end < 0 ? undefined : end);
    const tellsNext = canAsk && !isLeft && asker === undefined && readers.length === 0;
    return [first, ...(tellsNext ? others.slice(0, 1) : readers)].map((place) => ({ key, first: place }));
  }

  private leaveToOthers(key: string, othersListen?: boolean): boolean {
    if (othersListen === undefined) return false;
    const lock = this.at(key);
    lock.leftFree = othersListen && !lock.leftFree;
    return lock.leftFree;
  }

  /** Whether others, or those who were told, may have a head start before the others in line. */
  hasHeadStart(key: string): boolean {
    const { isFree, leftFree, told } = this.at(key);
    return (isFree && leftFree) || told;
  }

  private headOf(key: string): readonly Call[] {
    const [head] = this.at(key).queue;
    return head === undefined ? [] : [{ key, head }];
  }
}
