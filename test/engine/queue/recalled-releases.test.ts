import type { ReleaseReply, ReleaseRequest } from '../../../lib/backends/lock-backend.js';
import { LockError } from '../../../lib/engine/errors.js';
import { leftovers, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, type Disturbance } from '../../support/watched/watched-backend.js';

/** The reply to a release that was withdrawn means nothing. */
const WITHDRAWN: ReleaseReply = { released: false, listeners: 0, published: false, resent: false };

/**
 * A backend that sends its requests together, such as Redis, keeps a release for a moment. If another caller of the
 * process arrives meanwhile, the lock goes to that caller, and the release is withdrawn.
 */
describe('a lock whose release is not sent yet', () => {
  const world = openVirtualWorld();

  const scene = async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    await (await locks.acquire('another')).release();
    await runtime.advance(200); // until the clock of the tokens is no longer ahead, so that tokens can be reserved
    /** The releases that were sent. */
    const sent: string[] = [];
    const later: Disturbance = async (execute, request) => {
      const release = request as ReleaseRequest;
      release.queued?.();
      await new Promise<void>((resolve) => runtime.timer(5, resolve));
      if (release.leavesQueue?.() === false) return WITHDRAWN;
      sent.push(release.owner);
      return execute();
    };
    backend.disturb(later, 'release');
    return { ...process, sent };
  };

  it('goes to the caller that arrives, with its own lease', async () => {
    const { locks, backend, runtime, sent } = await scene();
    const first = await locks.acquire('order');
    const released = first.release();
    const second = await runtime.until(locks.acquire('order', { leaseTime: '1m' }));
    await runtime.until(released);
    await runtime.advance(100);
    expect(sent).toEqual([]);
    expect(backend.count('transfer')).toBe(1);
    expect(second.remainingTime()).toBeGreaterThan(59_000);
    await runtime.until(second.release());
    expect(sent).toEqual([second.owner]);
    expect(await locks.isLocked('order')).toBe(false);
  });

  it('leaves no timer for the wait of the caller that gets it', async () => {
    const process = await scene();
    const { locks, runtime } = process;
    const first = await locks.acquire('order');
    const released = first.release();
    const second = await runtime.until(locks.acquire('order', { waitTime: '1h' }));
    await runtime.until(released);
    await runtime.until(second.release());
    await runtime.advance(2_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('is given back when the caller that gets it has left before the answer', async () => {
    const { locks, backend, runtime } = await scene();
    const first = await locks.acquire('order');
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'transfer');
    const released = first.release();
    const refusal = errorOf(runtime.until(locks.acquire('order', { leaseTime: '1m', waitTime: 500 })));
    await runtime.advance(600);
    expect(await refusal).toBeInstanceOf(LockError);
    answer.open();
    await runtime.until(released);
    await runtime.advance(100);
    expect(await locks.isLocked('order')).toBe(false);
  });

  it('is kept for the last of many callers, which got it without a request', async () => {
    const { locks, backend, runtime, sent } = await scene();
    const releases: Promise<void>[] = [];
    let lease = await locks.acquire('order');
    for (let caller = 0; caller < 5; caller++) {
      releases.push(lease.release());
      lease = await locks.acquire('order');
    }
    // Tokens are reserved only when several callers came in a row. Each of those before had its own request.
    const requests = backend.count('transfer');
    expect(requests).toBeLessThan(5);
    await runtime.advance(120_000);
    expect(lease.held).toBe(true);
    expect((await locks.inspect('order')).owners.map(({ owner }) => owner)).toEqual([lease.owner]);
    expect(sent).toEqual([]);
    await runtime.until(Promise.all([...releases, lease.release()]));
    expect(sent).toEqual([lease.owner]);
    expect(await locks.isLocked('order')).toBe(false);
  });
});
