import { randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stdout } from 'node:process';
import type { HeldType } from '../../lib/backends/lock-backend.js';

/** What is acquired: a lock of some type, a place of a lock that n may hold, permits of a semaphore, or an open latch. */
export type Kind = Exclude<HeldType, 'permits'> | 'place' | 'permits' | 'latch';

/**
 * What one process observed, at the moment when it observed it. `call` names one acquisition, `<process>/<n>`. An
 * acquisition of several locks has records for each lock.
 */
export type HistoryEvent =
  /**
   * A caller asks. `patient`: it waits without a time limit, otherwise for `waitTime` ms, if that is known. `once`: it
   * does not wait. `permits`: how many of a semaphore, default 1. `mostHolders`: how many may hold the lock according to this call, by its option `permits`.
   */
  | {
      readonly kind: 'sent';
      readonly call: string;
      readonly locks: readonly string[];
      readonly patient: boolean;
      readonly waitTime?: number;
      readonly permits?: number;
      readonly mostHolders?: number;
      readonly once?: boolean;
      /** Of such calls, only the newest one waits. */
      readonly newest?: boolean;
      /** The call whose detached lock it adopts. */
      readonly ticket?: string;
    }
  | {
      readonly kind: 'granted';
      readonly call: string;
      readonly lock: string;
      readonly type: Kind;
      readonly owner: string;
      /** Absent for permits, which have none. */
      readonly token?: number;
      readonly permits?: number;
      /** Until when this process relies on the lease, unless it is confirmed again. Absent: for ever. */
      readonly validUntil?: number;
      /** Permits that the process renews until it gives them back. */
      readonly kept?: boolean;
      /** For a re-entry, the call in whose scope it is. */
      readonly within?: string;
      /** Whether it was detached. No process holds it then, so none notices when its lease ends. */
      readonly detached?: boolean;
    }
  /** The ticket of this call is used. From now on, nobody relies on it. */
  | { readonly kind: 'adopting'; readonly call: string }
  /** A renewal or an extension: the process relies on the lease until then. */
  | { readonly kind: 'confirmed'; readonly call: string; readonly validUntil: number }
  | { readonly kind: 'refused'; readonly call: string; readonly error: string; readonly message: string }
  | { readonly kind: 'release-asked'; readonly call: string }
  /** `kept`: the lock could not be detached, because a shutdown has left it to lapse. */
  | {
      readonly kind: 'release-answered';
      readonly call: string;
      readonly outcome: 'released' | 'lost' | 'kept' | 'failed';
      readonly reason?: string;
    }
  /** The process noticed that the lease is lost. */
  | { readonly kind: 'lost'; readonly call: string; readonly lock: string; readonly reason: string }
  /**
   * The process shuts down. From now on, it may refuse patient callers. After `keepsFor` ms, it gives back the permits
   * that it renews.
   */
  | { readonly kind: 'closing'; readonly keepsFor?: number }
  /** Until then, the event loop of the process is blocked, or the process does not know the time. */
  | { readonly kind: 'stalled'; readonly until: number }
  /** The process has taken this lock from these owners by force, and knows it. */
  | { readonly kind: 'forced'; readonly lock: string; readonly owners: readonly string[] }
  /**
   * The process sends an owner id in an acquisition of this lock although it has already released the lock under that
   * id.
   */
  | { readonly kind: 'reused'; readonly lock: string; readonly owner: string }
  /** The process is dead: it holds nothing and waits for nothing. */
  | { readonly kind: 'crashed' }
  /**
   * From now on, grants from before `until` prove nothing, because of a forced release or a loss of data. Without
   * `lock`, this applies to all locks.
   */
  | {
      readonly kind: 'upset';
      readonly lock?: string;
      readonly until: number;
      readonly reason: string;
      /** The tokens are lost as well, and the clock from which they are drawn was set back. */
      readonly forgetsTokens?: boolean;
      /** The leases are lost, and every holder knows it by then. */
      readonly reportedBy?: number;
    }
  /**
   * A latch gets a count, is counted down by this many steps, or is deleted. There are records for the request and for
   * its expected answer.
   */
  | { readonly kind: 'latch'; readonly lock: string; readonly step: LatchStep; readonly count: number }
  /** How many permits a semaphore has at the end, when nobody holds permits that will be given back. */
  | { readonly kind: 'permits-left'; readonly lock: string; readonly available: number }
  /** What the process has left behind at the end, by name. All numbers should be 0. */
  | { readonly kind: 'left'; readonly counts: Readonly<Record<string, number>> };

export type LatchStep = 'set' | 'counting' | 'counted' | 'ending' | 'ended';

/** `at`: milliseconds on a monotonic clock that all processes of the history share. */
export type HistoryRecord = HistoryEvent & { readonly at: number; readonly process: string };

/** The records of one or several processes, in chronological order. */
export class History {
  constructor(readonly records: HistoryRecord[] = []) {}

  add(process: string, at: number, event: HistoryEvent): void {
    this.records.push({ at, process, ...event });
  }

  /**
   * Writes the history into the folder CHAOS_HISTORIES, if that variable is set. `npm run suite -- histories` lets
   * Porcupine check it.
   */
  keepForOthers(): void {
    const folder = process.env.CHAOS_HISTORIES;
    if (folder !== undefined) writeFileSync(join(folder, `${randomUUID()}.json`), JSON.stringify(this.records));
  }

  /** Merges several logs into one history. Records of the same moment stay in the order of their log. */
  static merge(...histories: readonly History[]): History {
    return new History(histories.flatMap(({ records }) => records).sort((one, other) => one.at - other.at));
  }

  /** Reads what {@link HistoryFile}s have written. An incomplete last line of a killed process is left out. */
  static read(...paths: readonly string[]): History {
    return History.merge(...paths.map((path) => new History(readFileSync(path, 'utf8').split('\n').flatMap(parse))));
  }
}

/**
 * The history of a {@link RecordingProcess}. Pipes are written synchronously, so nothing that a killed process has
 * recorded is lost.
 */
export class HistoryPipe extends History {
  override add(process: string, at: number, event: HistoryEvent): void {
    stdout.write(`${JSON.stringify({ at, process, ...event })}\n`);
  }
}

/** A history that writes each record to disk at once, so that nothing is lost if the process is killed. */
export class HistoryFile extends History {
  constructor(private readonly path: string) {
    super();
  }

  override add(process: string, at: number, event: HistoryEvent): void {
    appendFileSync(this.path, `${JSON.stringify({ at, process, ...event })}\n`);
  }
}

/** Milliseconds on the monotonic clock that all processes of this machine share. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function parse(line: string): HistoryRecord[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}
