import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

const READY_TIMEOUT = 30_000;
const STOP_TIMEOUT = 5_000;

const running: Child[] = [];
let stopping = false;

/** A program that the demo started. It does not outlive the demo, even when the demo is killed. */
export class Child {
  private output = '';
  private readonly exited: Promise<void>;

  private constructor(
    readonly title: string,
    private readonly process: ChildProcessByStdio<null, Readable, Readable>,
  ) {
    this.exited = new Promise((resolve) => {
      process.once('exit', () => resolve()).once('error', () => resolve());
    });
    for (const stream of [process.stdout, process.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.output = (this.output + text).slice(-20_000);
      });
    }
  }

  /** @throws the system's error, such as ENOENT when there is no such program */
  static async start(title: string, program: string, args: string[], env?: NodeJS.ProcessEnv): Promise<Child> {
    if (stopping) throw new Error('the demo is being stopped');
    // In a separate process group, which Ctrl-C in the terminal does not reach: the demo stops it when it is not needed
    // any more.
    const child = spawn(program, args, {
      env,
      detached: true,
      windowsHide: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const started = new Child(title, child);
    running.push(started);
    await once(child, 'spawn');
    started.bindToThisProcess();
    return started;
  }

  /** Waits until the program has printed something that matches `pattern`. */
  async ready(pattern: RegExp): Promise<RegExpMatchArray> {
    const match = await this.printed(pattern, READY_TIMEOUT);
    if (match) return match;
    throw new Error(`${this.title} did not start:\n${this.output.trim()}`);
  }

  /** As {@link ready}, for at most `timeout` milliseconds. Looks at the last 20,000 characters only. */
  async printed(pattern: RegExp, timeout: number): Promise<RegExpMatchArray | undefined> {
    const deadline = performance.now() + timeout;
    for (;;) {
      const match = this.output.match(pattern);
      if (match) return match;
      if (this.ended || performance.now() > deadline) return undefined;
      await Promise.race([this.exited, sleep(20)]);
    }
  }

  async stop(): Promise<void> {
    if (!this.ended) this.process.kill('SIGTERM');
    await Promise.race([this.exited, sleep(STOP_TIMEOUT, undefined, { ref: false })]);
    if (!this.ended) this.process.kill('SIGKILL');
    await this.exited;
  }

  private get ended(): boolean {
    return this.process.exitCode !== null || this.process.signalCode !== null;
  }

  /**
   * Starts a shell that waits for the end of a pipe, which only this process holds open, and then kills the program.
   */
  private bindToThisProcess(): void {
    if (process.platform === 'win32') return;
    const script = 'read -r _ || kill -9 "$1"';
    const guard = spawn('/bin/sh', ['-c', script, 'sh', String(this.process.pid)], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    guard.on('error', () => {});
    guard.stdin.on('error', () => {});
    this.process.once('exit', () => guard.stdin.end('it has ended\n'));
  }
}

/** Stops all of them, the last one first. After that, nothing can be started. */
export async function stopChildren(): Promise<void> {
  stopping = true;
  for (let child = running.pop(); child; child = running.pop()) await child.stop();
}
