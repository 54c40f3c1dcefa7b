import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { guard } from '../../support/process-guard.js';
import type { CallMessage } from '../../support/processes/newest-caller.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

const PROGRAM = fileURLToPath(new URL('../../support/processes/newest-caller.ts', import.meta.url));
const LOADER = fileURLToPath(new URL('../../support/jest/typescript-loader.mjs', import.meta.url));
const PROCESSES = 5;
const BURSTS = Number(process.env.NEWEST_BURSTS_ON_REDIS ?? 12);

const name = '{slot}:index';
const key = `lock:${name}`;
const places = `nestjs_redis_lock_turns:${key}`;

interface Call {
  readonly of: Member;
  began?: number;
  ended?: number;
  failed?: string;
}

interface Member {
  readonly child: ChildProcess;
  readonly calls: Map<number, Call>;
}

/** Processes that call one after the other, and the calls of the present burst. */
class Callers {
  private readonly random = new SeededRandom(7);
  private members: Member[] = [];
  private calls: Call[] = [];
  private count = 0;

  constructor(private readonly options: RedisLockOptions) {}

  async start(): Promise<void> {
    this.members = await Promise.all(Array.from({ length: PROCESSES }, () => this.member()));
  }

  private async member(): Promise<Member> {
    const argument = JSON.stringify({
      name,
      options: { ...this.options, watchdogTimeout: 3_000, outageTimeout: '1m' },
    });
    const child = fork(PROGRAM, [argument], { execArgv: ['--import', LOADER] });
    guard(child);
    const member: Member = { child, calls: new Map() };
    await once(child, 'message');
    child.on('message', ({ call, ...what }: CallMessage) => Object.assign(member.calls.get(call) ?? {}, what));
    return member;
  }

  private below = (limit: number): number => Math.floor(this.random.next() * limit);

  private make(): Call {
    const of = this.members[this.below(PROCESSES)];
    const call: Call = { of };
    of.calls.set(++this.count, call);
    of.child.send(this.count);
    this.calls.push(call);
    return call;
  }

  private async kill(): Promise<void> {
    const n = this.below(PROCESSES);
    const { child, calls } = this.members[n];
    child.kill('SIGKILL');
    await once(child, 'exit');
    const now = Date.now();
    for (const call of calls.values()) {
      if (call.began !== undefined) call.ended ??= now;
      else call.failed ??= 'died';
    }
    this.members[n] = await this.member();
  }

  /**
   * Makes calls, during which something happens, then one more.
   *
   * @param waiting returns how many calls are in line
   */
  async burst(
    happens: 'nothing' | 'a death' | (() => Promise<unknown>),
    waiting: () => Promise<number>,
  ): Promise<void> {
    this.calls = [];
    const size = 2 + this.below(60);
    for (let n = 0; n < size; n++) {
      this.make();
      if (this.below(4) === 0) await sleep(this.below(8));
      if (n === size >> 1 && happens === 'a death') await this.kill();
      else if (n === size >> 1 && happens !== 'nothing') await (happens as () => Promise<unknown>)();
      if (happens === 'nothing' && n % 5 === 0) expect(await waiting()).toBeLessThanOrEqual(1);
    }
    // Each process sends one call after the other, and again after an outage. The last one has to come after all of them.
    const isUndecided = ({ began, failed }: Call) => began === undefined && failed === undefined;
    const isSent = async () => {
      const undecided = this.calls.filter(isUndecided).length;
      return undecided === 0 || (undecided === 1 && (await waiting()) === 1);
    };
    await until(isSent, 30_000);
    await sleep(happens === 'nothing' ? 50 : 500);
    await until(isSent, 30_000);
    const last = this.make();
    await until(() => this.calls.every(({ ended, failed }) => ended !== undefined || failed !== undefined), 30_000);
    expect(last.ended).toBeDefined();
    const others = new Set(this.calls.map(({ failed }) => failed));
    expect([...others].filter((failed) => !['LockSupersededError', 'died', undefined].includes(failed))).toEqual([]);
    const bodies = this.calls
      .filter(({ began }) => began !== undefined)
      .sort((a, b) => Number(a.began) - Number(b.began));
    for (const [n, { began }] of bodies.slice(1).entries())
      expect(Number(began)).toBeGreaterThanOrEqual(Number(bodies[n].ended));
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.members.map(async ({ child }) => {
        child.disconnect();
        await once(child, 'exit');
      }),
    );
  }
}

describe('bursts of calls of five processes, of which only the newest waits,', () => {
  let callers: Callers;
  afterEach(() => callers.stop());

  it('run the last call on one Redis, while messages are lost and processes die', async () => {
    const redis: RedisServer = await startRedis();
    const client = redis.client();
    callers = new Callers({ connection: redis.url });
    await callers.start();
    const waiting = () => client.zcard(places);
    const loseMessages = () => client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    for (let n = 0; n < BURSTS; n++)
      await callers.burst((['nothing', 'a death', loseMessages] as const)[n % 3], waiting);
    expect(await waiting()).toBe(0);
    await redis.stop();
  }, 120_000);

  it('run the last call in a cluster, while masters are replaced and processes die', async () => {
    const cluster: RedisCluster = await startCluster();
    const client = cluster.client();
    callers = new Callers({ connection: { nodes: cluster.nodes } });
    await callers.start();
    const slot = await cluster.slotOf(key);
    const waiting = () => client.zcard(places);
    const failover = () => cluster.failover(slot);
    const move = () => cluster.moveSlot(slot);
    for (let n = 0; n < BURSTS; n++)
      await callers.burst((['nothing', 'a death', failover, 'nothing', move] as const)[n % 5], waiting);
    expect(await waiting()).toBe(0);
    await cluster.stop();
  }, 180_000);
});
