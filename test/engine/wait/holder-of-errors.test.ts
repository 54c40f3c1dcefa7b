import type { ClientRecord, LockDirectory } from '../../../lib/backends/lock-backend.js';
import type { LockBusyError } from '../../../lib/engine/errors.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';

/** How long before a caller gives up the record of the holder is read, and how long one more takes at most. */
const READ_AHEAD = 600;
const SHORT_WAIT = 100;

const RECORD: ClientRecord = {
  clientId: '',
  application: 'shop',
  host: 'web-1',
  pid: 7,
  version: '',
  since: 0,
  held: 0,
  waiting: 0,
  longestWait: 0,
  holds: [],
  waits: [],
};

describe('the record of the client that an error names', () => {
  const world = openVirtualWorld();

  /** Ann holds the lock. Bob's process reads her record. */
  const open = async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const read: string[] = [];
    const client: LockDirectory['client'] = async (clientId) => {
      read.push(clientId);
      return { ...RECORD, clientId };
    };
    Object.defineProperty(bob.backend, 'directory', { value: { client } });
    const held = await ann.locks.acquire('order');
    const { runtime } = bob;
    const wait = (waitTime: number, options: LockOptions = {}) =>
      errorOf(bob.locks.acquire('order', { ...options, waitTime })) as Promise<LockBusyError>;
    return { ann, bob, held, read, runtime, wait };
  };

  it('is read shortly before the caller gives up', async () => {
    const { read, runtime, wait } = await open();
    const error = wait(30_000);
    await runtime.advance(30_000 - READ_AHEAD - 1);
    expect(read).toEqual([]);
    await runtime.advance(1 + SHORT_WAIT);
    expect(read).toHaveLength(1);
    await runtime.advance(READ_AHEAD - SHORT_WAIT);
    expect((await error).message).toContain("of 'shop'");
    expect(read).toHaveLength(1);
  });

  it('is not read for callers that are served before, try once or never give up', async () => {
    const { bob, held, read, runtime, wait } = await open();
    await wait(0);
    const served = bob.locks.acquire('order', { waitTime: 30_000 });
    const patient = bob.locks.acquire('order', { waitTime: Infinity, signal: new AbortController().signal });
    await runtime.advance(20_000);
    await held.release();
    await (await runtime.until(served)).release();
    await (await runtime.until(patient)).release();
    await runtime.advance(30_000);
    expect(read).toEqual([]);
  });

  it('is read soon for a caller that waits for a short time, also behind one that waits for longer', async () => {
    const { read, runtime, wait } = await open();
    const long = wait(30_000);
    await runtime.advance(10_000);
    const short = wait(READ_AHEAD);
    await runtime.advance(SHORT_WAIT - 1);
    expect(read).toEqual([]);
    await runtime.advance(1);
    expect(read).toHaveLength(1);
    await runtime.advance(READ_AHEAD);
    expect((await short).message).toContain("of 'shop'");
    await runtime.advance(20_000);
    expect((await long).message).toContain("of 'shop'");
  });

  it('is read for whoever gives up first, and again for the next one', async () => {
    const { read, runtime, wait } = await open();
    const last = wait(30_000);
    const first = wait(5_000);
    await runtime.advance(5_000 - READ_AHEAD - 1);
    expect(read).toEqual([]);
    await runtime.advance(READ_AHEAD + 1);
    expect((await first).message).toContain("of 'shop'");
    expect(read).toHaveLength(1);
    await runtime.advance(25_000 - READ_AHEAD - 1);
    expect(read).toHaveLength(1);
    await runtime.advance(READ_AHEAD + 1);
    expect((await last).message).toContain("of 'shop'");
    expect(read).toHaveLength(2);
  });

  it('is not read after the callers have left', async () => {
    const { bob, read, runtime } = await open();
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = errorOf(bob.locks.acquire('order', { waitTime: 5_000, signal }));
    await runtime.advance(1_000);
    controller.abort();
    await waiting;
    await runtime.advance(10_000);
    expect(read).toEqual([]);
  });
});
