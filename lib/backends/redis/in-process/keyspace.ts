import { OK, type Reply, wrongType } from './redis-error.js';

export type Hash = Map<string, string>;
export type SortedSet = Map<string, number>;

interface Values {
  readonly string: string;
  readonly hash: Hash;
  readonly list: string[];
  readonly zset: SortedSet;
}
export type KeyType = keyof Values;

interface Entry<T extends KeyType = KeyType> {
  readonly type: T;
  value: Values[T];
  /** When it expires, in ms of the server's time. */
  end: number | undefined;
}

/** With fewer keys than this, expired ones are not looked for. */
const FEW = 1_000;

/** The keys of a server in this process. */
export class Keyspace {
  private readonly entries = new Map<string, Entry>();
  /** How many keys there may be before the expired ones are removed. */
  private tooMany = FEW;

  /** @param now the server's time in ms. It stands still while a script runs */
  constructor(private readonly now: () => number) {}

  /** The value of a key. @throws WRONGTYPE if it has another type */
  find<T extends KeyType>(key: string, type: T): Values[T] | undefined {
    const entry = this.entry(key);
    if (entry === undefined) return undefined;
    if (entry.type !== type) throw wrongType();
    return entry.value as Values[T];
  }

  /** The value of a key, which is created if it does not exist. */
  findOrCreate<T extends Exclude<KeyType, 'string'>>(key: string, type: T): Values[T] {
    const found = this.find(key, type);
    if (found !== undefined) return found;
    const value = (type === 'list' ? [] : new Map()) as Values[T];
    this.add(key, { type, value, end: undefined });
    return value;
  }

  /** Writes a string over whatever the key has. `end`: in ms of the server's time */
  setString(key: string, value: string, end?: number): Reply {
    this.add(key, { type: 'string', value, end });
    return OK;
  }

  /** Changes a string, and not when it expires. */
  replaceString(key: string, value: string): void {
    this.setString(key, value, this.entry(key)?.end);
  }

  /** Removes members of a hash or a sorted set, and then the key if it is empty. Returns how many there were. */
  remove(key: string, type: 'hash' | 'zset', members: readonly string[]): number {
    const values = this.find(key, type);
    if (values === undefined) return 0;
    const count = members.filter((member) => values.delete(member)).length;
    this.deleteIfEmpty(key, values.size);
    return count;
  }

  /** Deletes a hash, list or sorted set that has become empty. */
  deleteIfEmpty(key: string, size: number): void {
    if (size === 0) this.entries.delete(key);
  }

  delete(key: string): boolean {
    return this.has(key) && this.entries.delete(key);
  }

  has(key: string): boolean {
    return this.entry(key) !== undefined;
  }

  typeOf(key: string): KeyType | undefined {
    return this.entry(key)?.type;
  }

  /** Undefined: there is no such key. Null: it does not expire. */
  endOf(key: string): number | null | undefined {
    const entry = this.entry(key);
    return entry && (entry.end ?? null);
  }

  /** The key does not expire any more. */
  persist(key: string): void {
    const entry = this.entry(key);
    if (entry !== undefined) entry.end = undefined;
  }

  /** The key must exist. One that should have expired already is deleted. */
  expireAt(key: string, end: number): void {
    const entry = this.entry(key);
    if (entry === undefined) return;
    if (end <= this.now()) this.entries.delete(key);
    else entry.end = end;
  }

  keys(): string[] {
    return [...this.entries.keys()].filter((key) => this.has(key));
  }

  get size(): number {
    return this.entries.size;
  }

  clear(): void {
    this.entries.clear();
  }

  private entry(key: string): Entry | undefined {
    const entry = this.entries.get(key);
    if (entry?.end === undefined || entry.end > this.now()) return entry;
    this.entries.delete(key);
    return undefined;
  }

  private add(key: string, entry: Entry): void {
    this.entries.set(key, entry);
    if (this.entries.size <= this.tooMany) return;
    for (const other of this.entries.keys()) this.entry(other);
    this.tooMany = Math.max(FEW, this.entries.size * 2);
  }
}
