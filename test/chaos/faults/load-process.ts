import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import type { RowLocksOptions } from '../../../lib/sql.js';
import type { SqlLocks } from '../../sql/sql-locks.js';
import { type History, type HistoryRecord, machineTime } from '../history.js';
import type { Crew } from './load.js';

export type SqlOptions = RowLocksOptions & { readonly locks: SqlLocks };

/** The instructions for a load process. They are sent as JSON. */
export interface LoadSpec {
  readonly process: string;
  readonly options: RedisLockOptions;
  readonly crews: readonly Crew[];
  /** Locks are in this database. */
  readonly sql?: SqlOptions;
}

/** A process of its own that keeps locks busy. It ends with the test process at the latest, when its input does. */
export class LoadProcess {
  killed = false;
  private errors = '';
  /** When the process wrote its last record. */
  private lastRecordAt = 0;
  private readonly child: ChildProcess;
  private readonly ended: Promise<unknown>;

  constructor(
    readonly spec: LoadSpec,
    private readonly history: History,
  ) {
    const args = ['--import', './test/support/jest/typescript-loader.mjs', 'test/chaos/faults/load-program.ts'];
    const child = spawn(process.execPath, [...args, JSON.stringify(spec)], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    this.child = child;
    child.stdin.on('error', () => {});
    child.stderr.on('data', (chunk) => {
      this.errors += chunk;
    });
    const lines = createInterface({ input: child.stdout });
    lines.on('line', (line) => {
      if (!line.endsWith('}')) return; // a killed process may leave half a line
      const record: HistoryRecord = JSON.parse(line);
      this.lastRecordAt = record.at;
      history.records.push(record);
    });
    this.ended = Promise.all([once(child, 'exit'), once(lines, 'close')]);
  }

  /**
   * SIGKILL, as the kernel does when memory is out. The process may go on for a moment after the signal was sent, and
   * nobody else can get its locks before it is dead: the history says that it crashed after the last thing that it did.
   */
  async kill(): Promise<void> {
    const { child, history, spec } = this;
    this.killed = true;
    if (child.exitCode !== null) return;
    const killed = machineTime();
    child.kill('SIGKILL');
    await this.ended;
    history.add(spec.process, Math.max(killed, this.lastRecordAt), { kind: 'crashed' });
  }

  /** SIGSTOP: it does not know that time goes on. */
  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  /** SIGCONT */
  thaw(): void {
    this.child.kill('SIGCONT');
  }

  /**
   * Lets it end by itself.
   *
   * @throws Error when it does not: something is left that keeps the process alive, or a call has no answer
   */
  async stop(): Promise<void> {
    if (this.killed) return;
    this.child.stdin?.end();
    const timer = setTimeout(() => {
      this.errors += 'it did not end by itself';
      this.child.kill('SIGKILL');
    }, 20_000);
    await this.ended;
    clearTimeout(timer);
    if (this.child.exitCode !== 0 || this.errors !== '') throw new Error(`${this.spec.process}: ${this.errors}`);
  }
}
