import type { Runtime } from '../backends/runtime.js';
import type { LockError } from '../engine/errors.js';
import { HarmlessLogger, type LockLogger } from '../engine/events/lock-logger.js';
import { nodeRuntime } from '../engine/node-runtime.js';

/** How long one line stands for all refusals of one reason, in milliseconds. */
const WINDOW = 10_000;
/** Further reasons share an entry. */
const MOST_REASONS = 100;

/** Writes a line for each reason and ten seconds. The line at the end says how many refusals there were since. */
export class RefusalLog {
  /** The reasons of the last ten seconds. */
  private readonly reasons = new Map<string, Entry>();

  private readonly logger: HarmlessLogger;

  constructor(
    logger: LockLogger,
    private readonly runtime: Runtime = nodeRuntime,
  ) {
    this.logger = new HarmlessLogger(logger);
  }

  write(level: Level, refusal: LockError): void {
    let reason = reasonOf(refusal);
    if (this.reasons.size >= MOST_REASONS && !this.reasons.has(reason)) reason = '';
    const entry = this.reasons.get(reason);
    if (entry === undefined) {
      this.logger[level](refusal.message);
      this.open(reason, { level, message: refusal.message, count: 0 });
    } else {
      entry.message = refusal.message;
      entry.count++;
    }
  }

  private open(reason: string, entry: Entry): void {
    this.reasons.set(reason, entry);
    this.runtime.timer(WINDOW, () => {
      this.reasons.delete(reason);
      const { level, message, count } = entry;
      if (count === 0) return;
      this.logger[level](`${message} (${count} more in the last ${WINDOW / 1_000} s)`);
      this.open(reason, { level, message, count: 0 });
    });
  }
}

type Level = 'error' | 'warn';

interface Entry {
  readonly level: Level;
  /** The latest. */
  message: string;
  /** How many refusals no line has reported yet. */
  count: number;
}

/** What refusals of different locks and methods have in common: the cause, without names and durations. */
function reasonOf({ name, message, cause, lockName }: LockError): string {
  const text = cause instanceof Error ? cause.message : message;
  const general = lockName === '' ? text : text.replaceAll(lockName, '…');
  return `${name}: ${general.replace(/\d+(?= m?s\b)/g, '…')}`;
}
