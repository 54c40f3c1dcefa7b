import { once } from 'node:events';
import { startProcess } from '../../support/processes/start-process.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

/** On a slow machine, one round may take longer, but not all of them. */
const ROUNDS = 2;
const LEASE = 2_000;
/** How late the timers of a busy machine may be, in milliseconds. */
const TOLERANCE = 1_500;

describe('the leader of several processes', () => {
  let redis: RedisServer;
  let keyPrefix = '';
  let tests = 0;
  const members: Member[] = [];
  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(() => {
    keyPrefix = `lock:${++tests}:`;
  });
  afterEach(() => {
    for (const { child } of members.splice(0)) child.kill('SIGKILL');
  });
  afterAll(() => redis.stop());

  class Member {
    text = '';

    private constructor(readonly child: Awaited<ReturnType<typeof startProcess>>['child']) {
      child.stdout?.on('data', (data) => {
        this.text += data;
      });
    }

    static async start(lease: number): Promise<Member> {
      const { child, line } = await startProcess('leader.ts', redis.url, keyPrefix, 'cleaner', String(lease));
      const member = new Member(child);
      member.text = `${line}\n`;
      members.push(member);
      return member;
    }

    get leads(): boolean {
      return this.text.includes('leads\n');
    }
  }

  /** Ends the leader again and again. Returns how long it took each time until another process was the leader. */
  async function takeovers(lease: number, signal: 'SIGTERM' | 'SIGKILL'): Promise<number[]> {
    const standing = [await Member.start(lease), await Member.start(lease)];
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await until(() => standing.some(({ leads }) => leads));
      expect(standing.filter(({ leads }) => leads)).toHaveLength(1);
      const [leader, standBy] = standing[0].leads ? standing : [...standing].reverse();
      await until(() => standBy.text.includes('stands\n'));
      const ended = once(leader.child, 'exit');
      const killed = performance.now();
      leader.child.kill(signal);
      await until(() => standBy.leads, lease + 15_000);
      times.push(performance.now() - killed);
      await ended;
      if (signal === 'SIGTERM') expect(leader.text).toMatch(/revoked\n$/);
      if (round < ROUNDS - 1) standing.splice(0, 2, standBy, await Member.start(lease));
    }
    return times;
  }

  it('is succeeded within a second after SIGTERM, whatever the lease', async () => {
    const times = await takeovers(60_000, 'SIGTERM');
    expect(Math.min(...times)).toBeLessThan(1_000);
    expect(Math.max(...times)).toBeLessThan(15_000); // none waited for the lease
  }, 60_000);

  it('is succeeded within a lease after kill -9', async () => {
    const times = await takeovers(LEASE, 'SIGKILL');
    expect(Math.min(...times)).toBeLessThan(LEASE + TOLERANCE);
  }, 60_000);
});
