import type { History, HistoryRecord, Kind } from '../history.js';

/** By how many milliseconds a process and its history may disagree about the end of a lease. */
const CLOCK_TOLERANCE = 1;

/** A moment. Records with the same time are in the order in which they were written. */
export interface Instant {
  readonly at: number;
  readonly order: number;
}

export function before(one: Instant, other: Instant): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

/** A period in which a process relied on its lease, without its end. */
export interface Stretch {
  readonly from: Instant;
  to: Instant;
}

/** Why a grant proves little. */
export interface Doubt {
  readonly since: Instant;
  /** Earlier tokens may be repeated. */
  readonly forgetsTokens: boolean;
}

/**
 * The time in which one call holds a lock or permits: from the grant until they were given back, lost, or not renewed
 * in time.
 */
export class Tenure {
  readonly valid: Stretch[] = [];
  /** The backend was upset before the grant, so it is not certain that this tenure excludes others. */
  suspect = false;
  /** The first of the upsets that made it suspect. */
  doubt?: Doubt;
  /** When the last confirmed lease ends. */
  deadline = Number.NEGATIVE_INFINITY;
  /** The latest time until which it is kept. */
  private latest = Number.POSITIVE_INFINITY;
  /** The process has noticed the loss. */
  lost?: Instant;

  constructor(
    readonly process: string,
    readonly call: string,
    readonly lock: string,
    readonly type: Kind,
    readonly owner: string,
    readonly token: number | undefined,
    readonly permits: number,
    readonly within: string | undefined,
    readonly granted: Instant,
    /** Only for permits: the process renews them until it releases them or notices their loss. */
    readonly kept = false,
    /** Whether it is held by a ticket, not by a process. */
    readonly detached = false,
  ) {}

  /** From this moment on, the process relies on the lease until `deadline`. */
  confirm(from: Instant, deadline: number): void {
    this.end(from);
    this.deadline = Math.min(deadline, this.latest);
    if (this.deadline > from.at) this.valid.push({ from, to: { at: this.deadline, order: -1 } });
  }

  /** Only its holder can end it. It does not even end when the holder dies. */
  get isForGood(): boolean {
    return this.type === 'permits' && this.deadline === Number.POSITIVE_INFINITY;
  }

  /** The process does not rely on the lease after this moment. */
  end(at: Instant): void {
    const last = this.valid.at(-1);
    if (last !== undefined && before(at, last.to)) last.to = at;
  }

  /** Shutdown gives it back at this time. */
  limit(at: number): void {
    this.latest = at;
    this.deadline = Math.min(this.deadline, at);
    this.end({ at, order: -1 });
  }

  isValid(at: Instant): boolean {
    const last = this.valid.at(-1);
    return last !== undefined && before(at, last.to);
  }

  get shows(): string {
    const token = this.token === undefined ? '' : ` with token ${this.token}`;
    return `${this.call} (${this.type}, owner ${this.owner})${token}`;
  }
}

/** One acquisition and its outcome. */
export interface Call {
  readonly process: string;
  readonly call: string;
  readonly locks: readonly string[];
  readonly patient: boolean;
  /** For how many milliseconds it waits, if that is known. */
  readonly waitTime?: number;
  /** How many permits of a semaphore it wants. */
  readonly permits: number;
  /** How many may hold the lock according to this call; undefined: one, or readers. */
  readonly mostHolders?: number;
  /** It does not wait. */
  readonly once: boolean;
  /** Of such calls, only the newest one waits. */
  readonly newest: boolean;
  /** The call whose detached lock it adopts. */
  readonly ticket?: string;
  readonly sent: Instant;
  readonly tenures: Tenure[];
  answered?: Instant;
  refused?: { readonly error: string; readonly message: string };
  releaseAsked?: Instant;
  released?: { readonly outcome: string; readonly at: number };
  /** Whether the process knew, or could have known by its clock, that it was lost when the release was requested. */
  lostBefore?: boolean;
}

/** One step of a latch. */
export type LatchRecord = HistoryRecord & { kind: 'latch' } & { readonly now: Instant };

/** A history, sorted by calls. */
export class Digest {
  readonly calls = new Map<string, Call>();
  readonly tenures: Tenure[] = [];
  readonly closing = new Map<string, Instant>();
  readonly crashed = new Map<string, Instant>();
  readonly left: (HistoryRecord & { kind: 'left' })[] = [];
  readonly upsets: (HistoryRecord & { kind: 'upset' } & { readonly now: Instant })[] = [];
  readonly forced: (HistoryRecord & { kind: 'forced' } & { readonly now: Instant })[] = [];
  readonly reused: (HistoryRecord & { kind: 'reused' } & { readonly now: Instant })[] = [];
  readonly stalls: (HistoryRecord & { kind: 'stalled' })[] = [];
  readonly latches = new Map<string, LatchRecord[]>();
  readonly permitsLeft: (HistoryRecord & { kind: 'permits-left' })[] = [];
  readonly end: Instant;
  /** By lock and owner. */
  private readonly doubts = new Map<string, Doubt>();

  constructor(history: History) {
    let order = 0;
    let last: Instant = { at: 0, order: 0 };
    for (const record of history.records) {
      last = { at: record.at, order: ++order };
      if (record.kind === 'upset') this.upsets.push({ ...record, now: last });
      this.read(record, last);
    }
    this.end = last;
  }

  /** What the call around this one held of the same lock. */
  outer({ within, lock }: Tenure): Tenure | undefined {
    return within === undefined ? undefined : this.calls.get(within)?.tenures.find((other) => other.lock === lock);
  }

  private read(record: HistoryRecord, now: Instant): void {
    const { process } = record;
    switch (record.kind) {
      case 'sent': {
        const {
          call,
          locks,
          patient,
          waitTime,
          permits = 1,
          mostHolders,
          once = false,
          newest = false,
          ticket,
        } = record;
        const asked = { process, call, locks, patient, waitTime, permits, mostHolders, once, newest, ticket };
        this.calls.set(call, { ...asked, sent: now, tenures: [] });
        return;
      }
      case 'granted': {
        const { call, lock, type, owner, token, permits = 1, within, kept, detached } = record;
        const tenure = new Tenure(process, call, lock, type, owner, token, permits, within, now, kept, detached);
        tenure.doubt = this.doubtOf(tenure, record.at);
        tenure.suspect = tenure.doubt !== undefined;
        if (tenure.suspect) this.rememberDoubt(tenure);
        const closing = this.closing.get(process);
        if (closing !== undefined && tenure.kept) tenure.limit(closing.at);
        if (!tenure.suspect) tenure.confirm(now, record.validUntil ?? Number.POSITIVE_INFINITY);
        this.tenures.push(tenure);
        const asked = this.calls.get(call);
        asked?.tenures.push(tenure);
        if (asked !== undefined) asked.answered = now;
        return;
      }
      case 'confirmed':
        for (const tenure of this.tenuresOf(record.call)) if (!tenure.suspect) tenure.confirm(now, record.validUntil);
        return;
      case 'adopting':
        for (const tenure of this.tenuresOf(record.call)) tenure.end(now);
        return;
      case 'refused': {
        const asked = this.calls.get(record.call);
        if (asked === undefined) return;
        asked.refused = record;
        asked.answered = now;
        return;
      }
      case 'release-asked': {
        const asked = this.calls.get(record.call);
        if (asked === undefined) return;
        asked.releaseAsked = now;
        const doubtless = { at: now.at - CLOCK_TOLERANCE, order: 0 };
        asked.lostBefore ??= asked.tenures.some((tenure) => !tenure.suspect && !tenure.isValid(doubtless));
        for (const tenure of asked.tenures) tenure.end(now);
        return;
      }
      case 'release-answered': {
        const asked = this.calls.get(record.call);
        if (asked !== undefined) asked.released = record;
        return;
      }
      case 'lost': {
        const asked = this.calls.get(record.call);
        if (asked !== undefined && asked.releaseAsked === undefined) asked.lostBefore = true;
        for (const tenure of this.tenuresOf(record.call)) {
          tenure.end(now);
          tenure.lost ??= now;
        }
        return;
      }
      case 'closing':
        this.closing.set(process, now);
        for (const tenure of this.tenures) {
          if (tenure.process === process && tenure.kept) tenure.limit(now.at + (record.keepsFor ?? 0));
        }
        return;
      case 'crashed':
        this.crashed.set(process, now);
        for (const tenure of this.tenures) {
          if (tenure.process === process && !tenure.isForGood) tenure.end(now);
        }
        return;
      case 'upset':
        for (const tenure of this.tenures) {
          if (record.lock !== undefined && tenure.lock !== record.lock) continue;
          if (tenure.isValid(now) && !tenure.suspect) {
            tenure.suspect = true;
            tenure.doubt = { since: now, forgetsTokens: record.forgetsTokens ?? false };
            this.rememberDoubt(tenure);
          }
          tenure.end(now);
        }
        return;
      case 'forced':
        this.forced.push({ ...record, now });
        return;
      case 'reused':
        this.reused.push({ ...record, now });
        return;
      case 'stalled':
        this.stalls.push(record);
        return;
      case 'latch':
        this.latches.set(record.lock, [...(this.latches.get(record.lock) ?? []), { ...record, now }]);
        return;
      case 'permits-left':
        this.permitsLeft.push(record);
        return;
      case 'left':
        this.left.push(record);
    }
  }

  /** The doubt about a grant that was made before an upset, or handed off from such a grant. */
  private doubtOf({ lock, owner }: Tenure, at: number): Doubt | undefined {
    const upsets = this.upsets.filter((upset) => at < upset.until && (upset.lock ?? lock) === lock);
    const inherited = this.doubts.get(`${lock} ${owner}`);
    if (upsets.length === 0) return inherited;
    const forgetsTokens = upsets.some((upset) => upset.forgetsTokens) || (inherited?.forgetsTokens ?? false);
    return { since: inherited?.since ?? upsets[0].now, forgetsTokens };
  }

  private rememberDoubt({ lock, owner, doubt }: Tenure): void {
    const key = `${lock} ${owner}`;
    if (doubt !== undefined && !this.doubts.has(key)) this.doubts.set(key, doubt);
  }

  private tenuresOf(call: string): readonly Tenure[] {
    return this.calls.get(call)?.tenures ?? [];
  }
}
