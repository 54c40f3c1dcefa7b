import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { guard } from '../support/process-guard.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';

const LOADER = fileURLToPath(new URL('../support/jest/typescript-loader.mjs', import.meta.url));
const WORKER = fileURLToPath(new URL('../support/processes/blocking-worker.ts', import.meta.url));
const LEASE = 1_500;
const NAMES = 3;
const PROCESSES = 6;
const TIME = Number(process.env.CHAOS_TIME ?? 40_000);

interface Event {
  readonly enters?: string;
  readonly leaves?: string;
  readonly token: number;
  readonly at: number;
  readonly held?: boolean;
}

/** The time in which a process was certain to hold a lock, and whether it still was at the end. */
interface Stay {
  readonly name: string;
  readonly token: number;
  readonly from: number;
  until: number;
  /** Undefined: the process was killed inside. */
  held?: boolean | undefined;
  /** A fault concerned it that the option does not cover. */
  isDisturbed: boolean;
}

/** A process that blocks its event loop inside locks. */
class Blocker {
  readonly stays: Stay[] = [];
  readonly child: ChildProcess;

  constructor(url: string, longest: number, keepWhileBlocked: number) {
    const args = [url, String(LEASE), String(NAMES), String(longest), String(keepWhileBlocked)];
    this.child = spawn(process.execPath, ['--import', LOADER, WORKER, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    guard(this.child);
    createInterface(this.child.stdout as NodeJS.ReadableStream).on('line', (line) => this.heard(JSON.parse(line)));
  }

  get stay(): Stay | undefined {
    const last = this.stays.at(-1);
    return last?.until === Number.POSITIVE_INFINITY ? last : undefined;
  }

  private heard({ enters, leaves, token, at, held }: Event): void {
    if (enters !== undefined)
      this.stays.push({ name: enters, token, from: at, until: Number.POSITIVE_INFINITY, isDisturbed: false });
    if (leaves !== undefined && this.stay !== undefined) Object.assign(this.stay, { until: at, held });
  }
}

/** Processes block their event loops for 0.5 to 10 leases. Some are killed or stopped, and Redis stalls. */
describe('six processes whose event loops are blocked inside locks', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('never hold a lock at the same time, and lose it only when they are stopped', async () => {
    const start = () => new Blocker(redis.url, 10, 20 * LEASE);
    const blockers = Array.from({ length: PROCESSES }, start);
    const all = [...blockers];
    const disturb = (blocker: Blocker) => {
      if (blocker.stay !== undefined) blocker.stay.isDisturbed = true;
    };
    await until(() => all.some(({ stays }) => stays.length > 0));
    const end = performance.now() + TIME;
    while (performance.now() < end) {
      await sleep(500 + Math.random() * 2_000);
      const index = Math.floor(Math.random() * PROCESSES);
      const blocker = blockers[index];
      const fault = Math.random();
      if (fault < 0.25) {
        disturb(blocker);
        blocker.child.kill('SIGKILL');
        blockers[index] = start();
        all.push(blockers[index]);
      } else if (fault < 0.5) {
        blocker.child.kill('SIGSTOP');
        disturb(blocker);
        await sleep(LEASE * (0.3 + Math.random() * 2));
        disturb(blocker);
        blocker.child.kill('SIGCONT');
      } else if (fault < 0.75) {
        redis.pause();
        await sleep(LEASE * 0.2);
        redis.resume();
      }
    }
    for (const { child } of all) child.kill('SIGKILL');
    await sleep(200);

    const stays = all.flatMap((blocker) => blocker.stays);
    const certain = stays.filter(({ held }) => held === true);
    const overlaps: string[] = [];
    for (const one of certain)
      for (const other of certain)
        if (one !== other && one.name === other.name && one.from < other.from && other.from < one.until)
          overlaps.push(`${one.name}: ${one.token} until ${one.until}, ${other.token} from ${other.from}`);
    expect(overlaps).toEqual([]);
    for (let n = 0; n < NAMES; n++) {
      const tokens = stays.filter(({ name }) => name === `chaos:${n}`).sort((one, other) => one.from - other.from);
      expect(tokens.map(({ token }) => token)).toEqual(tokens.map(({ token }) => token).sort((a, b) => a - b));
    }
    const past = certain.filter((stay) => stay.until - stay.from > LEASE * 1.5);
    console.log(`${stays.length} stays, ${past.length} kept past their lease`);
    expect(past.length).toBeGreaterThan(3);
    expect(stays.filter(({ held, isDisturbed }) => held === false && !isDisturbed)).toEqual([]);
    await until(async () => (await redis.client().keys('lock:*')).length === 0);
  });
});
