import type {
  FlightBackend,
  FlightRelease,
  FlightReleaseReply,
  FlightReply,
  FlightRequest,
  FlightRun,
  ResultState,
} from '../../../../lib/backends/flight-backend.js';
import type { AcquireRequest } from '../../../../lib/backends/lock-requests.js';
import { mayShareResult } from '../../../../lib/backends/may-share-result.js';
import { findBusy, grant } from './grant-or-busy.js';
import type { MemoryStore } from './memory-store.js';
import type { ReleaseMessages } from './release-messages.js';

/** How long a result is kept at least for the callers that were waiting, in milliseconds. */
const SHORTEST = 10_000;
/** How much longer than the holder's lease a waiting caller is remembered, in milliseconds. */
const LONGER = 1_000;

/** The clocks of the backend. */
interface Clocks {
  now(): number;
  /** The monotonic clock of the process. */
  monotonic(): number;
  wallMicros(): number;
}

/** Single flights in memory that behave as on Redis. */
export class MemoryFlights implements FlightBackend {
  constructor(
    private readonly store: MemoryStore,
    private readonly messages: ReleaseMessages,
    private readonly clocks: Clocks,
    private readonly assertLock: (key: string) => void,
  ) {}

  async acquire({ key, owner, leaseTime, begin, keepFor, maxSize }: FlightRequest): Promise<FlightReply> {
    const now = this.clocks.now();
    this.assertLock(key);
    const { results, wanted } = this.store.flights;
    const reading = this.reading();
    const entry = results.get(key, now);
    if (entry !== undefined && entry.result.run !== owner) {
      const { result, endTime } = entry;
      const { value, ended, run } = result;
      const age = Math.max(reading - ended, Math.floor((now - endTime) * 1_000));
      if (mayShareResult(result, Buffer.byteLength(value), age, begin, { keepFor, maxSize }))
        return { acquired: false, remaining: 0, holder: run, reading, result, age };
    }
    const request: AcquireRequest = { key, type: 'flight', owner, leaseTime, reserve: 0, waiterTimeout: 0 };
    const busy = findBusy(this.store, request, now);
    if (busy !== undefined) {
      wanted.set(key, now + busy.remaining + LONGER, now);
      return { ...busy, reading };
    }
    if (entry?.result.run === owner) return { acquired: false, remaining: 1, holder: undefined, reading };
    // An owner that asks again may be running already.
    if (this.store.locks.get(key, now) === undefined) this.store.flights.begin(key);
    grant(this.store, request, leaseTime, now);
    return { acquired: true, token: reading, reserved: 0 };
  }

  async release(release: FlightRelease): Promise<FlightReleaseReply> {
    const { key, owner, token, keepFor, value, runnerWaitsUntil } = release;
    const { clocks } = this;
    const now = clocks.now();
    const { flights } = this.store;
    const { results, wanted } = flights;
    const record = this.store.locks.get(key, now);
    if (!record?.isHeldBy(owner, 'flight', now)) {
      const wasStored = results.get(key, now)?.result.run === owner;
      return { released: wasStored ? 'before' : 'gone', resent: false };
    }
    const forgotten = flights.forgottenSince(key, token, now);
    const kept = forgotten === undefined ? keepFor : 0;
    if (kept > 0 || wanted.get(key, now) !== undefined) {
      const late = Math.max(0, clocks.monotonic() - runnerWaitsUntil);
      const ended = late > 0 ? Math.floor(clocks.wallMicros() - late * 1_000) : this.reading();
      const before = Math.min(forgotten ?? ended, ended);
      const result = { value, run: owner, ended, before, kept: ended + kept * 1_000 };
      results.set(key, { result, endTime: now - late, until: now + Math.max(kept, SHORTEST) }, now);
    }
    record.remove(owner, 'flight');
    this.store.locks.delete(key);
    wanted.delete(key);
    this.messages.wake(key, 'flight', now);
    return { released: 'now', resent: false };
  }

  async mayJoin({ key, owner, token }: FlightRun): Promise<boolean> {
    const now = this.clocks.now();
    const isHeld = this.store.locks.get(key, now)?.isHeldBy(owner, 'flight', now) === true;
    return isHeld && this.store.flights.forgottenSince(key, token, now) === undefined;
  }

  async forget(key: string): Promise<boolean> {
    const now = this.clocks.now();
    const { flights, locks } = this.store;
    const had = flights.results.get(key, now) !== undefined;
    flights.results.delete(key);
    if (locks.get(key, now) !== undefined) flights.forget(key, this.reading(), now);
    return had;
  }

  async inspect(key: string): Promise<ResultState | undefined> {
    const now = this.clocks.now();
    const entry = this.store.flights.results.get(key, now);
    if (entry === undefined) return undefined;
    const { kept, ended, value } = entry.result;
    const left = kept - this.store.fencing.now(this.clocks.wallMicros());
    const remaining = Math.ceil(Math.min(left / 1_000, (kept - ended) / 1_000 - (now - entry.endTime)));
    return remaining > 0 ? { size: Buffer.byteLength(value), remaining } : undefined;
  }

  private reading(): number {
    return this.store.fencing.next('', 'flight', 0, this.clocks.wallMicros()).token;
  }
}
