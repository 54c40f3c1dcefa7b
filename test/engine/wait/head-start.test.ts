import { HEAD_START } from '../../../lib/backends/lock-backend.js';
import { openVirtualWorld } from '../../support/lock-world.js';

const KEY = 'lock:order';

describe('a process that is first in line when a release leaves the lock to those outside it', () => {
  const world = openVirtualWorld();

  /** @param delay after how many ms a client outside the line asks. Undefined: it only listens */
  const release = async (delay?: number) => {
    const { runtime } = world;
    const [ann, bob, outsider] = await Promise.all([1, 2, 3].map(() => world.process({ keyPrefix: 'lock:' })));
    const { backend } = outsider;
    const asks = async () => {
      const options = { leaseTime: 1_000, reserve: 0, waiterTimeout: 0, pastWaitingWriters: true };
      const reply = await backend.acquire({ key: KEY, type: 'reentrant', owner: 'java:1', ...options });
      granted.push(reply.acquired ? 'outsider' : 'nobody');
    };
    const granted: string[] = [];
    const lease = await ann.locks.acquire('order');
    const waiting = bob.locks.acquire('order').then((next) => {
      granted.push('bob');
      return next;
    });
    await runtime.advance(100);
    const listens = backend.subscribe(KEY, 'reentrant', 'java', () => {
      if (delay !== undefined) runtime.timer(delay, asks);
    });
    await lease.release();
    await runtime.advance(HEAD_START - 1);
    listens.close();
    // The virtual time of a first test ends before bob is served.
    waiting.catch(() => {});
    return { granted, waiting, runtime };
  };

  it('does not ask before them', async () => {
    const { granted } = await release(HEAD_START - 2);
    expect(granted).toEqual(['outsider']);
  });

  it('gets the lock soon if they do not want it', async () => {
    const { granted, waiting, runtime } = await release();
    expect(granted).toEqual([]);
    await runtime.advance(5);
    expect(granted).toEqual(['bob']);
    await (await waiting).release();
  });
});
