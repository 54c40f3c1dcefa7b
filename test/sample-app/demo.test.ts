import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/servers/free-port.js';
import { startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';

const MARK = 'DEMO_TEST_RUN';

/** The demo, from its sources, in a process of its own. What it starts inherits its mark. */
class Demo {
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

const row = (label: string, ...cells: (string | number)[]) =>
  new RegExp(`^ *${label.replace(/[+]/g, '\\+')} +${cells.join(' +')}`, 'm');

/** What the demo printed below the first heading that begins like this. */
function sectionOf(output: string, heading: string): string {
  const section = output.split(/^ *── /m).find((text) => text.startsWith(heading));
  return section?.slice(section.indexOf('\n')) ?? '';
}

describe('the demo', () => {
  let demo: Demo | undefined;
  afterEach(async () => {
    demo?.kill('SIGKILL');
    await until(() => demo?.running.length === 0);
  });

  const expectGoodResult = (output: string) => {
    expect(output).toMatch(row('sold', 40, 120, '← oversold by 80!'));
    expect(output).toMatch(row('sold + left = in stock', '✓', '✗'));
    expect(output).toMatch(/✓ transfers +100 booked; 300 pieces before, 300 after/);
    expect(output).toMatch(/✓ fencing tokens/);
    expect(output).toMatch(/nightly report +due [3-9] times/);
    expect(output).toContain('✓ With the lock, nothing was sold that was not there.');
  };

  it('oversells without the lock only, between two processes on the Redis of REDIS_URL, and leaves nothing there', async () => {
    const redis = await startRedis();
    demo = new Demo({ REDIS_URL: redis.url });
    const code = await demo.exitCode();
    expectGoodResult(demo.output);
    expect(code).toBe(0);
    expect(demo.output).toMatch(row('orders in work at once', 1, '\\d\\d'));
    expect(demo.output).toContain(`2 processes, shop-1 and shop-2, share the Redis`);
    expect(demo.output).toContain(`127.0.0.1:${redis.port}`);
    expect(demo.running).toEqual([]);
    expect(await redis.client().keys('{shop}*')).toEqual([]);
    await redis.stop();
  }, 90_000);

  it('does so in one process where there is no Redis, and says how to see two', async () => {
    const nothing = mkdtempSync(join(tmpdir(), 'no-redis-'));
    demo = new Demo({ PATH: nothing });
    const code = await demo.exitCode();
    rmSync(nothing, { recursive: true });
    expectGoodResult(demo.output);
    expect(code).toBe(0);
    expect(demo.output).toContain('1 process, shop-1, with its locks in memory');
    expect(demo.output).toContain('REDIS_URL=redis://localhost:6379 npm run demo');
    expect(demo.running).toEqual([]);
  }, 90_000);

  it.each(['SIGINT', 'SIGKILL'] as const)(
    'leaves no process behind after %s',
    async (signal) => {
      demo = new Demo({});
      await until(() => demo?.output.includes('shop-1 and shop-2'), 60_000);
      expect(demo.output).toMatch(/2 processes, shop-1 and shop-2, share a Redis \S+ of the demo's own/);
      expect(demo.running.filter((command) => /redis-server|main\.ts/.test(command))).toHaveLength(3);
      demo.kill(signal);
      await until(() => demo?.running.length === 0);
    },
    90_000,
  );

  it('tells what each tool says about a process that is stuck in a lock, and leaves nothing in Redis', async () => {
    const redis = await startRedis();
    demo = new Demo({ REDIS_URL: redis.url }, '--stuck', '--after', '5', '--all');
    const code = await demo.exitCode();
    const { output } = demo;
    const under = (heading: string) => sectionOf(output, heading);
    const holder = /shop-1 on \S+, pid \d+/;
    expect(under('await locks.inspect')).toMatch(/application: 'shop-1'.*method: 'OrdersService\.order'.*waiting: 1/s);
    expect(under('npx nestjs-redis-lock inspect')).toMatch(
      new RegExp(`held by +${holder.source}, in OrdersService\\.order, since .*waiting +1`, 's'),
    );
    expect(under('npx nestjs-redis-lock ls')).toMatch(
      new RegExp(`sku:lamp-\\w+ +exclusive +${holder.source} +OrdersService\\.order `),
    );
    expect(under('npx nestjs-redis-lock clients')).toMatch(/shop-2 .*shop-1 /s);
    expect(under('GET /metrics of shop-1')).toMatch(/^ *distributed_lock_held\{group="sku:#<args\[0\]>".*\} 1$/m);
    expect(under('GET /metrics of shop-2')).toMatch(/^ *distributed_lock_waiting\{group="sku:#<args\[0\]>".*\} 1$/m);
    const board = JSON.parse(under('GET http://'));
    expect(board.locks.rows).toMatchObject([
      {
        owners: [{ application: 'shop-1', method: 'OrdersService.order' }],
        waiters: [{ application: 'shop-2', method: 'StockService.deliver' }],
      },
    ]);
    expect(under('npx nestjs-redis-lock release')).toMatch(/Released by force at .*: the payment provider is down/);
    expect(under('shop-2 goes on')).toMatch(/delivered: 201 .*"quantity":50/);
    expect(under('a span of shop-1')).toMatch(/name: 'lock hold sku:.*outcome': 'lost'/s);
    expect(under('a span of shop-2')).toMatch(/name: 'lock acquire sku:.*outcome': 'acquired'/s);
    expect(code).toBe(0);
    expect(demo.running).toEqual([]);
    expect(await redis.client().keys('{shop}*')).toEqual([]);
    await redis.stop();
  }, 90_000);

  it('says at once what is stuck, then how far it is, and in the end only what matters', async () => {
    const redis = await startRedis();
    demo = new Demo({ REDIS_URL: redis.url }, '--stuck', '--after', '12');
    await until(() => /holds the lock 'sku:lamp-\w+': the payment provider does not answer/.test(demo?.output ?? ''));
    expect(demo.output).not.toContain('npx nestjs-redis-lock');
    expect(await demo.exitCode()).toBe(0);
    expect(demo.output).toContain('… 10 of 12 s');
    expect(demo.output).toMatch(
      /sku:lamp-\w+ +exclusive +shop-1 .*Released by force .*delivered: 201 .*LockLostError|was lost/s,
    );
    expect(demo.output.trimEnd().split('\n').length).toBeLessThan(65);
    await redis.stop();
  }, 90_000);

  it.each([
    { options: ['--stuck', '--after', 'soon'], says: "--after is 'soon'; it must be 2 to 60 seconds" },
    { options: ['--stick'], says: "Unknown option '--stick'" },
    { options: ['--stuck'], says: '--stuck needs two processes that share a Redis' },
  ])(
    '$options: fails, and says why',
    async ({ options, says }) => {
      const nothing = mkdtempSync(join(tmpdir(), 'no-redis-'));
      demo = new Demo({ PATH: nothing }, ...options);
      expect(await demo.exitCode()).toBe(1);
      rmSync(nothing, { recursive: true });
      expect(demo.output).toContain(`✗ ${says}`);
    },
    60_000,
  );

  it('says that a Redis cannot be reached, and fails', async () => {
    const port = await freePort();
    demo = new Demo({ REDIS_URL: `redis://:secret@127.0.0.1:${port}` });
    expect(await demo.exitCode()).toBe(1);
    expect(demo.output).toMatch(/✗ The Redis at 127\.0\.0\.1:\d+\/0 cannot be used: .*ECONNREFUSED/);
    expect(demo.output).not.toContain('secret');
  }, 60_000);
});
