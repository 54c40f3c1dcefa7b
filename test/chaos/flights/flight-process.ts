import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { guard } from '../../support/process-guard.js';
import { machineTime } from '../history.js';
import type { FlightRecord } from './flight-history.js';
import type { FlightSpec } from './flight-program.js';

/** A separate process that keeps single flights busy. It ends with the test process at the latest, when its input does. */
export class FlightProcess {
  private errors = '';
  private lastRecordAt = 0;
  private killed = false;
  private readonly child: ChildProcess;
  private readonly ended: Promise<unknown>;

  constructor(
    readonly spec: FlightSpec,
    private readonly records: FlightRecord[],
  ) {
    const args = ['--import', './test/support/jest/typescript-loader.mjs', 'test/chaos/flights/flight-program.ts'];
    const child = spawn(process.execPath, [...args, JSON.stringify(spec)], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    this.child = child;
    guard(child);
    child.stdin.on('error', () => {});
    child.stderr.on('data', (chunk) => {
      this.errors += chunk;
    });
    const lines = createInterface({ input: child.stdout });
    lines.on('line', (line) => {
      if (!line.endsWith('}')) return; // a killed process may leave half a line
      const record: FlightRecord = JSON.parse(line);
      this.lastRecordAt = record.at;
      records.push(record);
    });
    this.ended = Promise.all([once(child, 'exit'), once(lines, 'close')]);
  }

  /** How many calls have been answered. */
  get answered(): number {
    const { process } = this.spec;
    return this.records.filter((record) => record.kind === 'answered' && record.process === process).length;
  }

  /** SIGKILL. It may go on for a moment after the signal was sent: see LoadProcess. */
  async kill(): Promise<void> {
    this.killed = true;
    const at = machineTime();
    this.child.kill('SIGKILL');
    await this.ended;
    this.records.push({ at: Math.max(at, this.lastRecordAt), process: this.spec.process, kind: 'crashed' });
  }

  /** SIGSTOP: it does not know that time goes on. */
  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  /** SIGCONT */
  thaw(): void {
    this.child.kill('SIGCONT');
  }

  /** @throws Error when it does not end by itself: something keeps it alive, or a call has no answer */
  async stop(): Promise<void> {
    if (this.killed) return;
    this.child.stdin?.end();
    const timer = setTimeout(() => {
      this.errors += 'it did not end by itself';
      this.child.kill('SIGKILL');
    }, 30_000);
    await this.ended;
    clearTimeout(timer);
    if (this.child.exitCode !== 0 || this.errors !== '') throw new Error(`${this.spec.process}: ${this.errors}`);
  }
}
