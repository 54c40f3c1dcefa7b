import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { guard } from '../../support/process-guard.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import type { Question } from './careless-holder.js';
import { type Guard, Register } from './register.js';

const LEASE = 600;

/** Two processes add one to a register. The first one is stopped in the middle, until its lease has ended. */
describe('a holder that is paused past its lease', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('overwrites what the next holder wrote if nobody checks fencing tokens: an update is lost', async () => {
    const { register, answers } = await addTwice('never', 'after its read');
    expect(answers).toEqual({ first: true, second: true, lost: true });
    expect(register.value).toBe(1);
  });

  it('is refused if the write checks its token: no update is lost', async () => {
    const { register, answers } = await addTwice('on write', 'after its read');
    expect(answers).toEqual({ first: false, second: true, lost: true });
    expect(register.value).toBe(1);
  });

  it('writes between the read and the write of the next holder if only writes check tokens: an update is lost', async () => {
    const { register, answers } = await addTwice('on write', 'until the other has read');
    expect(answers).toEqual({ first: true, second: true, lost: true });
    expect(register.value).toBe(1);
  });

  it('is refused there as well if the read leaves its token, too: no update is lost', async () => {
    const { register, answers } = await addTwice('on read', 'until the other has read');
    expect(answers).toEqual({ first: false, second: true, lost: true });
    expect(register.value).toBe(1);
  });

  /**
   * @param paused until the other process has added one, or until it has read
   * @returns how the register answered each write, and whether the first process was notified that its lease was lost
   */
  async function addTwice(guard: Guard, paused: 'after its read' | 'until the other has read') {
    const register = new Register(guard);
    const holder = new Holder(redis.url);
    const locks = createLockService({ connection: redis.url });
    const read = await holder.asks('read');
    holder.child.kill('SIGSTOP');
    await sleep(50); // a process on another core is stopped a moment later
    holder.answer(register.read(read.token));

    const lease = await locks.acquire('stock', { waitTime: '20s' });
    const value = register.read(lease.fencingToken) as number;
    let second = paused === 'after its read' && register.write(value + 1, lease.fencingToken);
    holder.child.kill('SIGCONT');
    const write = await holder.asks('write');
    const first = register.write(write.value, write.token);
    if (paused === 'until the other has read') second = register.write(value + 1, lease.fencingToken);
    expect(lease.held).toBe(true);
    await lease.release();
    holder.answer(first);
    const { lost } = await holder.asks('bye');
    holder.answer(true);
    await holder.ended;
    await locks.close();
    return { register, answers: { first, second, lost } };
  }
});

class Holder {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly ended: Promise<unknown>;
  private readonly questions: AsyncIterator<string>;

  constructor(url: string) {
    const args = ['--import', './test/support/jest/typescript-loader.mjs', 'test/chaos/anomalies/careless-holder.ts'];
    const child = spawn(process.execPath, [...args, url, String(LEASE)], { stdio: ['pipe', 'pipe', 'inherit'] });
    guard(child);
    this.child = child;
    this.ended = once(child, 'exit');
    this.questions = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  async asks<A extends Question['ask']>(ask: A): Promise<Extract<Question, { ask: A }>> {
    const question = JSON.parse((await this.questions.next()).value) as Question;
    expect(question.ask).toBe(ask);
    return question as Extract<Question, { ask: A }>;
  }

  answer(answer: unknown): void {
    this.child.stdin.write(`${JSON.stringify(answer)}\n`);
  }
}
