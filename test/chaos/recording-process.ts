import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { guard } from '../support/process-guard.js';
import { machineTime } from './history.js';

export interface RecordingOptions<Line> {
  /** The path of its file. */
  readonly program: string;
  /** Whether it is JavaScript, which needs no loader. */
  readonly isPlain?: boolean;
  readonly nodeOptions?: readonly string[];
  /** Called for each record. */
  record(line: Line): void;
  /** Called when the process was killed. */
  crashed(at: number): void;
  /** How many milliseconds the process may take to exit. */
  readonly endsWithin: number;
}

/**
 * A program of the chaos tests in a separate process, which writes a record as JSON in each line. It ends with the test
 * process at the latest, because its input does.
 */
export class RecordingProcess<Spec extends { readonly process: string }, Line extends { readonly at: number }> {
  killed = false;
  private errors = '';
  /** When the process wrote its last record. */
  private lastRecordAt = 0;
  private readonly child: ChildProcess;
  private readonly ended: Promise<unknown>;

  /** @param spec the instructions, which are sent as JSON */
  constructor(
    readonly spec: Spec,
    private readonly options: RecordingOptions<Line>,
  ) {
    const { program, record, isPlain = false, nodeOptions = [] } = options;
    const loader = isPlain ? [] : ['--import', './test/support/jest/typescript-loader.mjs'];
    const child = spawn(process.execPath, [...nodeOptions, ...loader, program, JSON.stringify(spec)], {
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
      const one: Line = JSON.parse(line);
      this.lastRecordAt = one.at;
      record(one);
    });
    this.ended = Promise.all([once(child, 'exit'), once(lines, 'close')]);
  }

  /**
   * SIGKILL, as the kernel sends it when memory runs out. The process may continue for a moment after the signal was
   * sent, and nobody else can get its locks before it is dead. So the time of the crash is after its last record.
   */
  async kill(): Promise<void> {
    this.killed = true;
    if (this.child.exitCode !== null) return;
    const killed = machineTime();
    this.child.kill('SIGKILL');
    await this.ended;
    this.options.crashed(Math.max(killed, this.lastRecordAt));
  }

  /** Writes a line to its input. */
  tell(line: string): void {
    this.child.stdin?.write(`${line}\n`);
  }

  /** SIGSTOP. The process does not notice that time passes. */
  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  /** SIGCONT */
  thaw(): void {
    this.child.kill('SIGCONT');
  }

  /**
   * Ends its input, and waits until it has exited.
   *
   * @throws Error when it does not exit, because something keeps the process alive, or a call has no answer
   */
  async stop(): Promise<void> {
    if (this.killed) return;
    this.child.stdin?.end();
    const timer = setTimeout(() => {
      this.errors += 'it did not end by itself';
      this.child.kill('SIGKILL');
    }, this.options.endsWithin);
    await this.ended;
    clearTimeout(timer);
    if (this.child.exitCode !== 0 || this.errors !== '') throw new Error(`${this.spec.process}: ${this.errors}`);
  }
}
