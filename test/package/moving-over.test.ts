import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guard } from '../support/process-guard.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { packLibrary, ThrowAwayApp } from './throw-away-app.js';

const INSTALL_TIMEOUT = 300_000;
const PACKAGES = ['@nestjs/common@11', '@nestjs/core@11', 'reflect-metadata@0.1', 'rxjs@7', 'ioredis@5'];
const LIBRARIES = ['redlock', 'redis-semaphore', 'murlock', 'nestjs-redlock-universal'] as const;
/** Bodies of each replica in each state of the fleet. */
const BODIES = 15;

type Stage = 'old' | 'bridge' | 'new';

interface Body {
  readonly pid: number;
  readonly order: string;
  readonly from: number;
  /** A replica that is killed inside a body ends it at once. */
  readonly to: number;
}

/** The replicas of an application, while a release replaces them. */
class Fleet {
  readonly #running: ChildProcess[] = [];
  killed = 0;

  constructor(
    private readonly app: ThrowAwayApp,
    private readonly library: string,
    private readonly env: NodeJS.ProcessEnv,
    private readonly file: string,
  ) {}

  async start(stage: Stage): Promise<void> {
    const child = spawn(process.execPath, ['moving-replica.mjs', this.library, stage, this.file], {
      cwd: this.app.path,
      env: this.env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    guard(child);
    await Promise.race([
      once(child.stdout, 'data'),
      once(child, 'exit').then(() => Promise.reject(new Error(`a replica with ${this.library} (${stage}) ended`))),
    ]);
    this.#running.push(child);
  }

  /** Ends the oldest replica, and starts another in its place. */
  async replace(how: 'SIGTERM' | 'killed inside a body', stage: Stage): Promise<void> {
    const oldest = this.#running.shift() as ChildProcess;
    const ended = once(oldest, 'exit');
    if (how === 'SIGTERM') oldest.kill('SIGTERM');
    else oldest.kill('SIGUSR2');
    await ended;
    if (how !== 'SIGTERM') this.killed++;
    await this.start(stage);
  }

  /** Until each replica has run some more bodies, also after the lease of a killed one. */
  async work(): Promise<void> {
    const before = await this.bodies();
    await until(async () => {
      const all = (await this.bodies()).slice(before.length);
      return this.#running.every(({ pid }) => all.filter((body) => body.pid === pid).length >= BODIES);
    }, 90_000);
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#running.splice(0).map(async (child) => {
        const ended = once(child, 'exit');
        child.kill('SIGTERM');
        await ended;
      }),
    );
  }

  /** In the order in which they started. */
  async bodies(): Promise<Body[]> {
    const begun = new Map<string, { from: number; to: number; pid: number; order: string }>();
    const bodies: Body[] = [];
    for (const line of (await readFile(this.file, 'utf8')).split('\n').slice(0, -1)) {
      const [pid, order, what, time] = line.split(' ');
      const key = `${pid} ${order}`;
      if (what === 'in') {
        const body = { pid: Number(pid), order, from: Number(time), to: Number(time) };
        begun.set(key, body);
        bodies.push(body);
      } else {
        (begun.get(key) as { to: number }).to = Number(time);
      }
    }
    return bodies.sort((a, b) => a.from - b.from);
  }

  async overlaps(): Promise<string[]> {
    const found: string[] = [];
    const last = new Map<string, Body>();
    for (const body of await this.bodies()) {
      const before = last.get(body.order);
      if (before !== undefined && body.from < before.to) found.push(`${before.pid} and ${body.pid} in ${body.order}`);
      if (before === undefined || body.to > before.to) last.set(body.order, body);
    }
    return found;
  }
}

describe('an application that moves over from another library without a stop', () => {
  let folder: string;
  let redis: RedisServer;
  let app: ThrowAwayApp;
  const fleets: Fleet[] = [];
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'moving-'));
    let tarball: string;
    [tarball, redis] = await Promise.all([packLibrary(folder), startRedis()]);
    const others = [
      'redlock@5.0.0-beta.2',
      'redis-semaphore@5',
      'murlock@4',
      'nestjs-redlock-universal@0.3',
      'redlock-universal@0.8',
    ];
    app = await ThrowAwayApp.create(tarball, { type: 'module', packages: [...PACKAGES, ...others] });
    await app.add('moving-replica.mjs');
  }, INSTALL_TIMEOUT);
  afterAll(async () => {
    await Promise.all(fleets.map((fleet) => fleet.stop()));
    await Promise.all([redis?.stop(), app?.remove()]);
    await rm(folder, { recursive: true, force: true });
  });

  const open = async (library: string, name = library) => {
    const file = join(folder, `${name}.log`);
    await writeFile(file, '');
    const fleet = new Fleet(app, library, { ...process.env, NODE_OPTIONS: '', REDIS_URL: redis.url }, file);
    fleets.push(fleet);
    return fleet;
  };

  it.each(LIBRARIES)(
    'never lets two in, with %s, while each of two releases replaces the replicas one by one, some by a kill',
    async (library) => {
      const fleet = await open(library);
      for (const stage of ['old', 'old', 'old'] as const) await fleet.start(stage);
      await fleet.work();
      for (const stage of ['bridge', 'new'] as const) {
        for (const how of ['SIGTERM', 'killed inside a body', 'SIGTERM'] as const) {
          await fleet.replace(how, stage);
          await fleet.work();
        }
      }
      await fleet.stop();
      expect(await fleet.overlaps()).toEqual([]);
      expect(fleet.killed).toBe(2);
      expect((await fleet.bodies()).length).toBeGreaterThan(3 * 7 * BODIES - 1);
    },
    300_000,
  );

  it('would see that old and new replicas together do not exclude each other', async () => {
    const fleet = await open('redlock', 'without-bridge');
    for (const stage of ['old', 'new', 'old', 'new'] as const) await fleet.start(stage);
    await until(async () => (await fleet.overlaps()).length > 0, 60_000);
    await fleet.stop();
  }, 120_000);
});
