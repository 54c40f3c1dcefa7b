import { randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stdout } from 'node:process';
import type { HeldType } from '../../lib/backends/lock-backend.js';

/** What is acquired: a lock of some type, permits of a semaphore, or the way through a latch. */
export type Kind = HeldType | 'permits' | 'latch';

/**
 * What one process saw, in the moment in which it saw it. `call` names one acquisition, `<process>/<n>`; one of several locks has
 * records of each lock.
 */
export type HistoryEvent =
  /** A caller asks. `patient`: it waits for as long as it takes. `once`: not at all. `permits`: of a semaphore, default 1. */
  | {
      readonly kind: 'sent';
      readonly call: string;
      readonly locks: readonly string[];
      readonly patient: boolean;
      readonly permits?: number;
      readonly once?: boolean;
      /** It adopts the detached lock of this call. */
      readonly ticket?: string;
    }
  | {
      readonly kind: 'granted';
      readonly call: string;
      readonly lock: string;
      readonly type: Kind;
      readonly owner: string;
      /** Absent where there is none: permits. */
      readonly token?: number;
      readonly permits?: number;
      /** Until when this process counts on the lease, unless it is confirmed anew. Absent: for ever. */
      readonly validUntil?: number;
      /** Permits that the process renews until it gives them back. */
      readonly kept?: boolean;
      /** The call whose scope it is a share of (re-entry). */
      readonly within?: string;
      /** It was detached: no process holds it, so none notices when its lease ends. */
      readonly detached?: boolean;
    }
  /** The ticket of this call is used: it is not counted on any more. */
  | { readonly kind: 'adopting'; readonly call: string }
  /** A renewal or an extension: the lease is counted on until then. */
  | { readonly kind: 'confirmed'; readonly call: string; readonly validUntil: number }
  | { readonly kind: 'refused'; readonly call: string; readonly error: string; readonly message: string }
  | { readonly kind: 'release-asked'; readonly call: string }
  | {
      readonly kind: 'release-answered';
      readonly call: string;
      readonly outcome: 'released' | 'lost' | 'failed';
      readonly reason?: string;
    }
  /** The process noticed that the lease is lost. */
  | { readonly kind: 'lost'; readonly call: string; readonly lock: string; readonly reason: string }
  /** The process shuts down: from now on it may refuse patient callers. After `keepsFor` ms it gives back the permits that it renews. */
  | { readonly kind: 'closing'; readonly keepsFor?: number }
  /** The event loop of the process stands still until then, or it does not know the time. */
  | { readonly kind: 'stalled'; readonly until: number }
  /** The process has taken this lock from its owners by force, and knows. */
  | { readonly kind: 'forced'; readonly lock: string; readonly owners: readonly string[] }
  /** The process sends an id in an acquisition of this lock which it had given back before. */
  | { readonly kind: 'reused'; readonly lock: string; readonly owner: string }
  /** The process is dead: it holds nothing and waits for nothing. */
  | { readonly kind: 'crashed' }
  /**
   * What was granted before `until` proves nothing from now on: a force-release, a server that lost its data. Without `lock`, for
   * all locks.
   */
  | {
      readonly kind: 'upset';
      readonly lock?: string;
      readonly until: number;
      readonly reason: string;
      /** The tokens are gone as well, and the clock that they are drawn from shows less than before. */
      readonly forgetsTokens?: boolean;
      /** The leases are gone, and by then every holder knows. */
      readonly reportedBy?: number;
    }
  /** A latch is given a count, so many steps are asked of it, or its end is: asked, and answered as it should be. */
  | { readonly kind: 'latch'; readonly lock: string; readonly step: LatchStep; readonly count: number }
  /** What a semaphore has at the end, when nobody holds permits that come back. */
  | { readonly kind: 'permits-left'; readonly lock: string; readonly available: number }
  /** What the process still has at the end, by name: all of it should be 0. */
  | { readonly kind: 'left'; readonly counts: Readonly<Record<string, number>> };

export type LatchStep = 'set' | 'counting' | 'counted' | 'ending' | 'ended';

/** `at`: milliseconds on a monotonic clock that all processes of the history share. */
export type HistoryRecord = HistoryEvent & { readonly at: number; readonly process: string };

/** The records of one process or of several, in the order of time. */
export class History {
  constructor(readonly records: HistoryRecord[] = []) {}

  add(process: string, at: number, event: HistoryEvent): void {
    this.records.push({ at, process, ...event });
  }

  /** Writes it into the folder that CHAOS_HISTORIES names, if it does: `npm run test:histories` has it checked by Porcupine. */
  keepForOthers(): void {
    const folder = process.env.CHAOS_HISTORIES;
    if (folder !== undefined) writeFileSync(join(folder, `${randomUUID()}.json`), JSON.stringify(this.records));
  }

  /** One history of several logs. Records of one moment stay in the order in which their log has them. */
  static merge(...histories: readonly History[]): History {
    return new History(histories.flatMap(({ records }) => records).sort((one, other) => one.at - other.at));
  }

  /** Reads what {@link HistoryFile}s have written; a last line that a kill cut off is left out. */
  static read(...paths: readonly string[]): History {
    return History.merge(...paths.map((path) => new History(readFileSync(path, 'utf8').split('\n').flatMap(parse))));
  }
}

/**
 * The history of a {@link RecordingProcess}. Pipes are written synchronously: what was recorded is known, also of a
 * process that was killed.
 */
export class HistoryPipe extends History {
  override add(process: string, at: number, event: HistoryEvent): void {
    stdout.write(`${JSON.stringify({ at, process, ...event })}\n`);
  }
}

/** A history that is on disk with each record, so that a process that is killed leaves it behind. */
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
