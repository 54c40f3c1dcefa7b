import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const MARK = 'DEMO_TEST_RUN';

/** The demo, from its sources, in a process of its own. What it starts inherits its mark. */
export class Demo {
  output = '';
  private readonly mark = `${MARK}=${process.pid}-${Math.random()}`;
  private readonly process: ChildProcess;

  constructor(env: NodeJS.ProcessEnv, ...options: string[]) {
    const [name, value] = this.mark.split('=') as [string, string];
    const [loader, demo] = ['../support/jest/typescript-loader.mjs', '../../sample-app/demo/demo.ts'].map((file) =>
      fileURLToPath(new URL(file, import.meta.url)),
    );
    this.process = spawn(process.execPath, ['--import', loader!, demo!, ...options], {
      env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: '', [name]: value, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.process.stdout!, this.process.stderr!]) {
      stream.on('data', (chunk) => {
        this.output += chunk;
      });
    }
  }

  async exitCode(): Promise<number | null> {
    const [code] = await once(this.process, 'close');
    return code;
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** redis-server writes its title over its environment. */
  private get redisTitle(): string {
    const [, port] = this.output.match(/of the demo's own \(port (\d+)\)/) ?? [];
    return `redis-server 127.0.0.1:${port}`;
  }

  /** Command lines of the processes that it started, its own included, as far as they still run. */
  get running(): string[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => [read(`/proc/${pid}/cmdline`).replaceAll('\0', ' '), read(`/proc/${pid}/environ`)] as const)
      .filter(([command, environment]) => environment.includes(this.mark) || command.includes(this.redisTitle))
      .map(([command]) => command)
      .filter((command) => command !== ''); // a zombie has none
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

export const row = (label: string, ...cells: (string | number)[]) =>
  new RegExp(`^ *${label.replace(/[+]/g, '\\+')} +${cells.join(' +')}`, 'm');

/** What the demo prints when it ran to its end. */
export function expectGoodResult(output: string): void {
  expect(output).toMatch(row('sold', 40, 120, '← oversold by 80!'));
  expect(output).toMatch(row('sold + left = in stock', '✓', '✗'));
  expect(output).toMatch(/✓ transfers +100 booked; 300 pieces before, 300 after/);
  expect(output).toMatch(/✓ fencing tokens/);
  expect(output).toMatch(
    /✓ price list +computed once, by shop-\d, for 120 customers; without the single flight 120 times/,
  );
  expect(output).toMatch(/nightly report +due [3-9] times/);
  expect(output).toContain('✓ With the lock, nothing was sold that was not there.');
}
