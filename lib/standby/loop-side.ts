import { isDeepStrictEqual } from 'node:util';
import type { LockBackend } from '../backends/lock-backend.js';
import { type Moment, momentOf, type Runtime, type Timer } from '../backends/runtime.js';
import type { LockLogger } from '../engine/events/lock-logger.js';
import type { KeptLease, KeptLeases, Standby } from '../engine/hold/standby.js';
import { type ClonedServers, type KeptService, silenceOfBlock } from './messages.js';
import { BEAT, BEAT_WALL, newHeader, SAID, SlotChunk } from './slots.js';
import { type Member, StandbyThread } from './standby-thread.js';

/** Slots for usual names, and slots for the longest ones. */
const SIZES = [
  { size: 1_024, width: 64 },
  { size: 64, width: 1_280 },
] as const;
/** A slot is known by the number of its chunk, and its number in it. */
const SLOT_BITS = 10;
const SLOT_MASK = (1 << SLOT_BITS) - 1;

/** The longest time that fits in a word, in milliseconds: 12 days. */
const LONGEST = 2 ** 30;
/** A moment long ago. A lease that was confirmed then has ended. */
const LONG = 1e12;
/** How often a lease that becomes shorter looks whether the thread has got its answer, in milliseconds. */
const LOOK_AGAIN = 5;
const MOST_NAMES = 5;

export interface StandbySettings {
  readonly backend: Pick<LockBackend, 'description'>;
  readonly runtime: Runtime;
  readonly clientId: string;
  readonly watchdogTimeout: number;
  readonly commandTimeout: number;
  readonly keepWhileBlocked: number;
  /** Read again from time to time, because credentials change. */
  readonly servers: () => ClonedServers;
  /** Default: the thread of this process. */
  readonly joinThread?: (member: Member, runtime: Runtime) => JoinedThread;
}

type JoinedThread = Pick<StandbyThread, 'problem' | 'opened' | 'tell' | 'leave'>;

interface Chunk {
  readonly slots: SlotChunk;
  readonly leases: (KeptLease | undefined)[];
}

/** The part of a standby in the thread of the event loop: it writes leases into slots, and reads what was said about them. */
export class ThreadStandby implements Standby, KeptService {
  changes = 0;
  readonly header = newHeader();
  readonly id = StandbyThread.nextId();
  readonly clientId: string;
  readonly leaseTime: number;
  readonly keepWhileBlocked: number;
  readonly commandTimeout: number;
  readonly clockStart: bigint;
  servers: ClonedServers;
  private readonly all: Chunk[] = [];
  /** Free slots, for each of the sizes. */
  private readonly free: readonly number[][] = [[], []];
  private readonly runtime: Runtime;
  private lastBeat: Moment;
  /** The number of words that were read. */
  private said = 0;
  private thread: JoinedThread | undefined;
  private logger: LockLogger | undefined;
  private connectionProblem: string | undefined;
  private isReading = false;
  private isHurried = false;
  private refreshing: Timer | undefined;

  constructor(private readonly settings: StandbySettings) {
    const { runtime, clientId, watchdogTimeout, commandTimeout, keepWhileBlocked, servers } = settings;
    this.runtime = runtime;
    this.clientId = clientId;
    this.leaseTime = watchdogTimeout;
    this.commandTimeout = commandTimeout;
    this.keepWhileBlocked = keepWhileBlocked;
    this.servers = servers();
    // Read first, so that the thread's clock is not ahead of this one.
    const since = runtime.monotonic();
    this.clockStart = process.hrtime.bigint() - BigInt(Math.floor(since * 1e6));
    this.lastBeat = momentOf(runtime);
    this.beat(this.lastBeat);
    this.grow(0);
  }

  /** For messages to the thread. */
  get chunks(): readonly Pick<SlotChunk, 'size' | 'width' | 'memory'>[] {
    return this.all.map(({ slots }) => cloneable(slots));
  }

  get problem(): string | undefined {
    const reason = this.thread?.problem ?? this.connectionProblem;
    return reason && `keepWhileBlocked: the thread cannot renew anything now: ${reason}`;
  }

  start(logger: LockLogger): Promise<void> {
    this.logger = logger;
    const { joinThread = StandbyThread.join } = this.settings;
    this.thread = joinThread(this, this.runtime);
    this.refreshLater();
    return this.thread.opened(this.id);
  }

  close(): void {
    this.refreshing?.cancel();
    this.thread?.leave(this);
    this.thread = undefined;
  }

  /** Gives the thread new credentials: those of a lent client may have changed. */
  private refreshLater(): void {
    this.refreshing = this.runtime.timer(this.leaseTime / 3, () => {
      this.refreshLater();
      const servers = this.settings.servers();
      if (isDeepStrictEqual(servers, this.servers)) return;
      this.servers = servers;
      this.thread?.tell({ type: 'servers', id: this.id, servers });
    });
  }

  // ── What the thread reports ────────────────────────────────────────────────────────────────────────────────────────

  /** Whether the thread's connection answers. */
  connectionChanged(problem: string | undefined): void {
    this.connectionProblem = problem;
    if (problem !== undefined) this.warn(`${this.settings.backend.description}: ${this.problem}`);
  }

  /** Writes to the log. */
  warn(message: string): void {
    this.logger?.warn(message);
  }

  /** The thread has died, and what it had sent is too old to be executed. */
  endFlights(): void {
    for (const { slots } of this.all) slots.endFlights();
  }

  // ── For the watchdog ───────────────────────────────────────────────────────────────────────────────────────────────

  beat(now: Moment): void {
    this.isHurried = false;
    this.noteBeat(now);
  }

  private noteBeat(now: Moment): void {
    this.lastBeat = now;
    Atomics.store(this.header, BEAT, now.monotonic | 0);
    Atomics.store(this.header, BEAT_WALL, now.wall | 0);
  }

  /**
   * The answer that has granted a lease was read late, and the event loop may be blocked again at once. The thread takes
   * the loop for blocked until its next heartbeat, and renews what is due.
   */
  private hurry({ monotonic, wall }: Moment): void {
    this.isHurried = true;
    const silence = silenceOfBlock(this.leaseTime);
    this.noteBeat({ monotonic: monotonic - silence, wall: wall - silence });
  }

  guard(lease: KeptLease, now: Moment): void {
    if (lease.slot >= 0) this.drop(lease);
    if (now.monotonic > lease.leaseEnd - lease.leaseTime / 2) this.hurry(now);
    // Thousands of locks may be granted in one millisecond.
    else if (now.monotonic - this.lastBeat.monotonic >= 1 && !this.isHurried) this.noteBeat(now);
    const { key, owner, type, leaseTime } = lease;
    const from = owner.startsWith(this.clientId) ? this.clientId.length : 0;
    const length = key.length + owner.length - from;
    const size = length <= SIZES[0].width ? 0 : 1;
    if (length > SIZES[size].width) return;
    const free = this.free[size];
    if (free.length === 0) this.grow(size);
    const slot = free.pop() as number;
    lease.slot = slot;
    lease.standby = this;
    const { slots, leases } = this.all[slot >> SLOT_BITS];
    leases[slot & SLOT_MASK] = lease;
    slots.write(slot & SLOT_MASK, key, owner, from, type, leaseTime, dueOf(lease, now.monotonic));
  }

  drop(lease: KeptLease): void {
    const { slot } = lease;
    if (slot < 0) return;
    const { slots } = this.forget(lease);
    slots.free(slot & SLOT_MASK);
    this.reuse(slot, slots);
  }

  withdraw(lease: KeptLease): Promise<void> | undefined {
    const { slot } = lease;
    if (slot < 0) return undefined;
    const { slots } = this.forget(lease);
    const number = slot & SLOT_MASK;
    if (slots.withdraw(number)) {
      this.reuse(slot, slots);
      return undefined;
    }
    return new Promise((resolve) => {
      const look = () => {
        if (slots.isInFlight(number) && this.thread !== undefined) {
          this.runtime.timer(LOOK_AGAIN, look, 'keep-alive');
          return;
        }
        slots.free(number);
        this.reuse(slot, slots);
        resolve();
      };
      look();
    });
  }

  confirmed(lease: KeptLease): void {
    const { slot } = lease;
    if (slot < 0) return;
    const { monotonic } = this.lastBeat;
    this.all[slot >> SLOT_BITS].slots.setDue(slot & SLOT_MASK, dueOf(lease, monotonic));
  }

  limit({ slot }: KeptLease, until: number | undefined): void {
    if (slot >= 0) this.all[slot >> SLOT_BITS].slots.setLimit(slot & SLOT_MASK, until);
  }

  catchUp(lease: KeptLease): void {
    if (Atomics.load(this.header, SAID) === this.said || this.isReading) return;
    this.isReading = true; // reading asks the lease when it ends
    this.read(lease);
    this.isReading = false;
  }

  catchUpAll(): void {
    const said = Atomics.load(this.header, SAID);
    if (said === this.said) return;
    this.said = said;
    this.changes++;
    for (const { leases } of this.all) for (const lease of leases) if (lease !== undefined) this.read(lease);
  }

  foundGone(lease: KeptLease): boolean {
    return this.saidOf(lease) === 'gone';
  }

  keptSince(moment: number): KeptLeases {
    this.catchUpAll();
    const now = this.runtime.monotonic();
    const names: string[] = [];
    let count = 0;
    let remainingTime = Number.POSITIVE_INFINITY;
    for (const { leases } of this.all) {
      for (const lease of leases) {
        const said = lease && this.saidOf(lease);
        if (lease === undefined || typeof said !== 'number' || said < moment) continue;
        if (lease.leaseEnd <= now) continue;
        count++;
        remainingTime = Math.min(remainingTime, lease.leaseEnd - now);
        if (names.length < MOST_NAMES) names.push(lease.name);
      }
    }
    const longest = this.keepWhileBlocked;
    return { count, names, remainingTime: count === 0 ? 0 : Math.max(0, Math.round(remainingTime)), longest };
  }

  private saidOf({ slot }: KeptLease): 'gone' | number | undefined {
    return slot < 0 ? undefined : this.all[slot >> SLOT_BITS].slots.read(slot & SLOT_MASK);
  }

  private read(lease: KeptLease): void {
    const said = this.saidOf(lease);
    if (said === undefined || lease.lost !== undefined) return;
    if (said === 'gone') return lease.confirm({ monotonic: -LONG, wall: -LONG }, lease.validFor);
    const { validFor, leaseTime } = lease;
    // `validFor` stays as it is, so that nobody reads it together with the moment of another renewal.
    const confirmed = said + leaseTime - validFor;
    if (confirmed + validFor <= lease.leaseEnd) return;
    // If the machine was suspended since the last beat, that makes the lease seem older than it is, but never younger.
    const { monotonic, wall } = this.lastBeat;
    lease.confirm({ monotonic: confirmed, wall: wall + confirmed - monotonic }, validFor);
  }

  private forget(lease: KeptLease): Chunk {
    const { slot } = lease;
    // What was said about it must be known after the slot is gone.
    this.catchUp(lease);
    lease.slot = -1;
    lease.standby = undefined;
    const chunk = this.all[slot >> SLOT_BITS];
    chunk.leases[slot & SLOT_MASK] = undefined;
    return chunk;
  }

  private reuse(slot: number, { width }: SlotChunk): void {
    this.free[width === SIZES[0].width ? 0 : 1].push(slot);
  }

  private grow(index: 0 | 1): void {
    const { size, width } = SIZES[index];
    const slots = new SlotChunk(size, width, this.clientId);
    slots.clear();
    const first = this.all.length << SLOT_BITS;
    this.all.push({ slots, leases: new Array(size).fill(undefined) });
    for (let slot = size - 1; slot >= 0; slot--) this.free[index].push(first + slot);
    this.thread?.tell({ type: 'chunk', id: this.id, chunk: cloneable(slots) });
  }
}

function cloneable({ size, width, memory }: SlotChunk): Pick<SlotChunk, 'size' | 'width' | 'memory'> {
  return { size, width, memory };
}

/** When a lease has to be renewed, as a word: after a third of it, however long it was made. */
function dueOf({ leaseEnd, leaseTime }: KeptLease, now: number): number {
  return Math.min(leaseEnd - (leaseTime * 2) / 3, now + LONGEST) | 0;
}
