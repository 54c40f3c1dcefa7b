import { Worker } from 'node:worker_threads';
import { SlotChunk } from '../../lib/standby/slots.js';
import { until } from '../support/until.js';

const LOADER = new URL('../support/jest/typescript-loader.mjs', import.meta.url).href;

const PREFIX = '2f0c';

function open(size = 4, width = 64) {
  const loop = new SlotChunk(size, width, PREFIX);
  loop.clear();
  /** The other thread sees the same memory. */
  const thread = new SlotChunk(size, width, PREFIX, loop.memory);
  const write = (slot: number, n: number, key = `lock:${n}`) =>
    loop.write(slot, key, `${PREFIX}:${n}`, PREFIX.length, 'fenced', 30_000, 10_000);
  return { loop, thread, write };
}

describe('a slot', () => {
  it('tells the thread what to renew, when, and how far', () => {
    const { loop, thread } = open();
    expect(thread.idleState(1)).toBeUndefined();
    loop.write(1, 'lock:grün', `${PREFIX}:17`, PREFIX.length, 'write', 30_000, 10_000);
    const state = thread.idleState(1) as number;
    expect(thread.untilDue(1, 9_000.7)).toBe(1_000);
    expect(thread.leaseTime(1)).toBe(30_000);
    expect(thread.isOverLimit(1, 1e9)).toBe(false);
    expect(thread.begin(1, state)).toEqual({
      key: 'lock:grün',
      owner: `${PREFIX}:17`,
      type: 'write',
      leaseTime: 30_000,
    });
    loop.setLimit(1, 5_000);
    expect(thread.isOverLimit(1, 4_999)).toBe(false);
    expect(thread.isOverLimit(1, 5_000)).toBe(true);
    loop.setLimit(1, undefined);
    expect(thread.isOverLimit(1, 5_000)).toBe(false);
  });

  it('takes an owner of another client as it is', () => {
    const { loop, thread } = open();
    loop.write(0, 'a', 'ab:1', 0, 'semaphore', 1, 0);
    expect(thread.begin(0, thread.idleState(0) as number)?.owner).toBe('ab:1');
  });

  it('has room for a lease that lasts for years, and for times that do not fit in a word', () => {
    const { loop, thread } = open();
    loop.write(0, 'a', `${PREFIX}:1`, PREFIX.length, 'read', 315_360_000_000, (2 ** 31 + 5_000) | 0);
    expect(thread.leaseTime(0)).toBe(315_360_000_000);
    expect(thread.untilDue(0, 2 ** 31 - 5_000)).toBe(10_000);
  });

  it('brings back the moment of a renewal, or that the lease is gone', () => {
    const { loop, thread, write } = open();
    write(2, 1);
    expect(loop.read(2)).toBeUndefined();
    const state = thread.idleState(2) as number;
    thread.begin(2, state);
    thread.say(2, state, 123_456.78);
    thread.end(2, state);
    expect(loop.read(2)).toBe(123_456.7); // never later than it was
    thread.say(2, state, 'gone');
    expect(loop.read(2)).toBe('gone');
  });

  it('says nothing about the next lease when an answer about the former one is late', () => {
    const { loop, thread, write } = open();
    write(0, 1);
    const state = thread.idleState(0) as number;
    thread.begin(0, state);
    loop.free(0);
    write(0, 2);
    thread.say(0, state, 1_000);
    thread.say(0, state, 'gone');
    thread.end(0, state);
    expect(loop.read(0)).toBeUndefined();
    const next = thread.idleState(0) as number;
    expect(next).not.toBe(state);
    expect(thread.begin(0, next)?.owner).toBe(`${PREFIX}:2`);
    expect(loop.isInFlight(0)).toBe(true);
    thread.say(0, next, 2_000);
    thread.say(0, state, 'gone');
    expect(loop.read(0)).toBe(2_000);
  });

  it('forgets what was said about the former lease', () => {
    const { loop, thread, write } = open();
    write(0, 1);
    thread.say(0, thread.idleState(0) as number, 1_000);
    expect(loop.read(0)).toBe(1_000);
    loop.free(0);
    write(0, 2);
    expect(loop.read(0)).toBeUndefined();
  });

  it('is not begun when the lease has ended since its state was read', () => {
    const { loop, thread, write } = open();
    write(0, 1);
    const state = thread.idleState(0) as number;
    loop.free(0);
    expect(thread.begin(0, state)).toBeUndefined();
    write(0, 2);
    expect(thread.begin(0, state)).toBeUndefined();
  });

  it('is withdrawn at once when no request is under way', () => {
    const { loop, thread, write } = open();
    write(0, 1);
    const state = thread.idleState(0) as number;
    expect(loop.withdraw(0)).toBe(true);
    expect(thread.begin(0, state)).toBeUndefined();
  });

  it('is withdrawn when the request under way has ended, and no other one begins', () => {
    const { loop, thread, write } = open();
    write(0, 1);
    const state = thread.idleState(0) as number;
    thread.begin(0, state);
    expect(loop.withdraw(0)).toBe(false);
    expect(loop.isInFlight(0)).toBe(true);
    thread.end(0, state);
    expect(loop.isInFlight(0)).toBe(false);
    expect(thread.idleState(0)).toBeUndefined();
  });

  it('is free of the requests of a thread that has died', () => {
    const { loop, thread, write } = open();
    write(0, 1);
    thread.begin(0, thread.idleState(0) as number);
    loop.endFlights();
    expect(loop.isInFlight(0)).toBe(false);
    expect(thread.idleState(0)).toBeDefined();
  });

  it('is reused more often than there are generations', () => {
    const { loop, thread, write } = open();
    write(0, 1);
    const first = thread.idleState(0) as number;
    thread.say(0, first, 5);
    const memory = new Int32Array(loop.memory, 4 * 16);
    memory[0] = -8; // the last states before they wrap
    for (let n = 0; n < 4; n++) {
      write(0, n);
      const state = thread.idleState(0) as number;
      expect(loop.read(0)).toBeUndefined();
      expect(thread.begin(0, state)?.owner).toBe(`${PREFIX}:${n}`);
      thread.say(0, state, n + 10);
      expect(loop.read(0)).toBe(n + 10);
      loop.free(0);
    }
  });

  it('is never read half-written, in millions of reads', async () => {
    const { loop } = open(2, 64);
    const control = new Int32Array(new SharedArrayBuffer(8));
    const writer = new Worker(new URL('writing-thread.ts', import.meta.url), {
      execArgv: ['--import', LOADER],
      workerData: { memory: loop.memory, control, prefix: PREFIX },
    });
    let failure: unknown;
    writer.on('error', (error) => {
      failure = error;
    });
    await until(() => failure !== undefined || Atomics.load(control, 1) > 1_000);
    expect(failure).toBeUndefined();
    const thread = new SlotChunk(2, 64, PREFIX, loop.memory);
    let begun = 0;
    let said = 0;
    const reads = 3_000_000;
    for (let n = 0; n < reads; n++) {
      const word = loop.read(0);
      if (typeof word === 'number') {
        said++;
        const digit = Math.round(word) % 1e9;
        if (word !== 1e9 * digit + digit) throw new Error(`torn word: ${word}`);
      }
      const state = thread.idleState(0);
      const contents = state === undefined ? undefined : thread.begin(0, state);
      if (contents === undefined) continue;
      thread.end(0, state as number);
      begun++;
      const digits = contents.key.slice(1);
      const isWhole = contents.owner === `${PREFIX}:${digits}` && digits === digits[0].repeat(digits.length);
      if (!isWhole || contents.leaseTime !== Number(digits[0]))
        throw new Error(`torn slot: ${JSON.stringify(contents)}`);
    }
    Atomics.store(control, 0, 1);
    await writer.terminate();
    expect({ begun, said }).toEqual({ begun: expect.any(Number), said: expect.any(Number) });
    expect(begun).toBeGreaterThan(100);
    expect(said).toBeGreaterThan(100);
  });
});
