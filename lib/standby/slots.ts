// The memory that the event loop shares with its standby thread. The loop writes a slot for each lease that it renews,
// and clears one word when the lease ends. The thread reads slots, and says in one word of 64 bits what it has renewed.
// Nothing is read half-written: a state word with a generation guards what the loop writes, and what the thread says is
// one word, with the generation that it is about.

/** The words of the header, which concern all slots of a service. */
/** The last sign of life of the event loop, in ms of its monotonic clock and of the wall clock. */
export const BEAT = 0;
export const BEAT_WALL = 1;
/** How often the thread has said something. */
export const SAID = 2;
const HEADER = 16;

export type SlotType = (typeof SLOT_TYPES)[number];
/** A slot has the index of its type. `semaphore`: a permit, whose owner is the id of the permit. */
export const SLOT_TYPES = ['reentrant', 'fair', 'read', 'write', 'fenced', 'flight', 'permits', 'semaphore'] as const;

/** The words of one slot. A state is `generation << 2`, and two bits. */
const STATE = 0;
const DUE = 1;
const LIMIT = 2;
const LENGTHS = 3;
const TYPE = 4;
const WORDS = 5;

/** The thread has a request about the lease under way. */
const IN_FLIGHT = 1;
/** The thread must not begin another one. A free slot is withdrawn, too. */
const WITHDRAWN = 2;
const BITS = 3;

/** What the thread says: a generation above 42 bits for a time in tenths of a millisecond, or {@link GONE}. */
const TIME_BITS = 42n;
const GONE = (1n << TIME_BITS) - 1n;
const GENERATIONS = (1 << 22) - 1;

/** `gone`, or the moment before the confirmed renewal was sent, on the monotonic clock of the loop. */
export type Said = 'gone' | number;

export function newHeader(): Int32Array<SharedArrayBuffer> {
  return new Int32Array(new SharedArrayBuffer(HEADER * 4));
}

/** Milliseconds from `now` until the time in a word, which wraps after 24 days. */
export function until(word: number, now: number): number {
  return (word - Math.floor(now)) | 0;
}

/** What the thread needs to renew a lease. */
export interface SlotContents {
  readonly key: string;
  readonly owner: string;
  readonly type: SlotType;
  readonly leaseTime: number;
}

/** Slots with room for equally long names. */
export class SlotChunk {
  private readonly said: BigUint64Array;
  private readonly leaseTimes: Float64Array;
  private readonly words: Int32Array;
  private readonly text: Uint16Array;
  /** The key whose text is in each slot, in the loop that has written it. */
  private readonly keys: (string | undefined)[] = [];

  /**
   * @param width how many UTF-16 units of key and owner a slot has room for
   * @param prefix what owners usually begin with, so that it need not be written
   */
  constructor(
    readonly size: number,
    readonly width: number,
    private readonly prefix: string,
    readonly memory = new SharedArrayBuffer(size * (16 + WORDS * 4 + width * 2)),
  ) {
    this.said = new BigUint64Array(memory, 0, size);
    this.leaseTimes = new Float64Array(memory, size * 8, size);
    this.words = new Int32Array(memory, size * 16, size * WORDS);
    this.text = new Uint16Array(memory, size * (16 + WORDS * 4), size * width);
  }

  // ── For the loop ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Marks all slots as free. */
  clear(): void {
    for (let slot = 0; slot < this.size; slot++) this.words[slot * WORDS + STATE] = WITHDRAWN;
  }

  /**
   * Writes a lease into a free slot, for the thread to see.
   *
   * @param from how much of the owner is the prefix: all of it, or nothing
   * @param due when the lease has to be renewed
   */
  write(slot: number, key: string, owner: string, from: number, type: SlotType, leaseTime: number, due: number): void {
    const { words, text, width } = this;
    const at = slot * WORDS;
    const start = slot * width;
    // A lock that is taken again and again usually gets the same slot.
    if (this.keys[slot] !== key) {
      for (let i = 0; i < key.length; i++) text[start + i] = key.charCodeAt(i);
      this.keys[slot] = key;
    }
    const next = start + key.length - from;
    for (let i = from; i < owner.length; i++) text[next + i] = owner.charCodeAt(i);
    words[at + LENGTHS] = (key.length << 16) | (owner.length - from);
    words[at + TYPE] = SLOT_TYPES.indexOf(type) * 2 + (from > 0 ? 1 : 0);
    words[at + DUE] = due;
    words[at + LIMIT] = 0;
    this.leaseTimes[slot] = leaseTime;
    Atomics.store(words, at + STATE, (words[at + STATE] & ~BITS) + BITS + 1);
  }

  /** The slot is free from now on. What the thread still says about its lease is ignored. */
  free(slot: number): void {
    const at = slot * WORDS + STATE;
    Atomics.store(this.words, at, (this.words[at] & ~BITS) | WITHDRAWN);
  }

  /** Lets the thread begin no further request about the lease. @returns whether none is under way */
  withdraw(slot: number): boolean {
    return (Atomics.or(this.words, slot * WORDS + STATE, WITHDRAWN) & IN_FLIGHT) === 0;
  }

  isInFlight(slot: number): boolean {
    return (Atomics.load(this.words, slot * WORDS + STATE) & IN_FLIGHT) !== 0;
  }

  /** Ends the requests of a thread that has died. */
  endFlights(): void {
    for (let slot = 0; slot < this.size; slot++) Atomics.and(this.words, slot * WORDS + STATE, ~IN_FLIGHT);
  }

  setDue(slot: number, due: number): void {
    Atomics.store(this.words, slot * WORDS + DUE, due);
  }

  /** @param limit when renewals end, in ms of the monotonic clock; undefined: they do not */
  setLimit(slot: number, limit: number | undefined): void {
    Atomics.store(this.words, slot * WORDS + LIMIT, limit === undefined ? 0 : limit | 0 || 1);
  }

  /** What the thread has said about the present lease of a slot. */
  read(slot: number): Said | undefined {
    const word = Atomics.load(this.said, slot);
    const generation = (this.words[slot * WORDS + STATE] >>> 2) & GENERATIONS;
    if (Number(word >> TIME_BITS) !== generation || word === 0n) return undefined;
    const time = word & GONE;
    return time === GONE ? 'gone' : Number(time) / 10;
  }

  // ── For the thread ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** The state of a slot with a lease that may be renewed; undefined for others. */
  idleState(slot: number): number | undefined {
    const state = Atomics.load(this.words, slot * WORDS + STATE);
    return (state & BITS) === 0 ? state : undefined;
  }

  hasLeases(): boolean {
    for (let slot = 0; slot < this.size; slot++) if ((this.words[slot * WORDS + STATE] & WITHDRAWN) === 0) return true;
    return false;
  }

  /** When the lease has to be renewed, as far as the loop knows: in ms from `now` on. */
  untilDue(slot: number, now: number): number {
    return until(Atomics.load(this.words, slot * WORDS + DUE), now);
  }

  isOverLimit(slot: number, now: number): boolean {
    const limit = Atomics.load(this.words, slot * WORDS + LIMIT);
    return limit !== 0 && until(limit, now) <= 0;
  }

  leaseTime(slot: number): number {
    return this.leaseTimes[slot];
  }

  /**
   * Begins a request about the lease that a slot had in this state.
   *
   * @returns undefined if the slot has changed
   */
  begin(slot: number, state: number): SlotContents | undefined {
    const { words, text, width, prefix } = this;
    const at = slot * WORDS;
    const lengths = words[at + LENGTHS];
    const type = words[at + TYPE];
    const leaseTime = this.leaseTimes[slot];
    const start = slot * width;
    const end = start + (lengths >>> 16);
    const key = String.fromCharCode(...text.subarray(start, end));
    const owner = String.fromCharCode(...text.subarray(end, end + (lengths & 0xffff)));
    // Whoever changes a slot changes its state first. So this also says that nothing was read half-written.
    if (Atomics.compareExchange(words, at + STATE, state, state | IN_FLIGHT) !== state) return undefined;
    return { key, owner: type & 1 ? prefix + owner : owner, type: SLOT_TYPES[type >> 1], leaseTime };
  }

  /** Says something about the lease that the slot had in this state, unless it has another one by now. */
  say(slot: number, state: number, said: Said): void {
    const { words } = this;
    const known = Atomics.load(this.said, slot);
    if ((Atomics.load(words, slot * WORDS + STATE) | BITS) !== (state | BITS)) return;
    const generation = BigInt((state >>> 2) & GENERATIONS) << TIME_BITS;
    const time = said === 'gone' ? GONE : BigInt(Math.floor(said * 10));
    Atomics.compareExchange(this.said, slot, known, generation | time);
  }

  /** Ends a request about the lease that the slot had in this state. */
  end(slot: number, state: number): void {
    const at = slot * WORDS + STATE;
    for (;;) {
      const now = Atomics.load(this.words, at);
      if ((now | BITS) !== (state | BITS)) return;
      if (Atomics.compareExchange(this.words, at, now, now & ~IN_FLIGHT) === now) return;
    }
  }
}
