import { ActiveWork } from '../../lib/engine/active-work.js';

describe('the unfinished work of a service', () => {
  it('includes bodies that run', () => {
    const work = new ActiveWork();
    expect(work.isIdle).toBe(true);
    work.bodyStarted();
    work.bodyStarted();
    expect(work.isIdle).toBe(false);
    work.bodyEnded();
    expect(work.isIdle).toBe(false);
    work.bodyEnded();
    expect(work.isIdle).toBe(true);
  });

  it('includes releases whose callers have continued, and announces their ends to the one who watches', () => {
    const work = new ActiveWork();
    const seen: boolean[] = [];
    const unwatch = work.watch(() => seen.push(work.isIdle));
    work.releaseStarted();
    work.releaseStarted();
    expect(work.isIdle).toBe(false);
    work.releaseEnded();
    work.releaseEnded();
    expect(seen).toEqual([false, true]);
    unwatch();
    work.changed();
    expect(seen).toHaveLength(2);
  });

  it('announces the end of a removal, and of an acquisition of several locks', () => {
    const work = new ActiveWork();
    const seen: boolean[] = [];
    work.watch(() => seen.push(work.isAnswered));
    const several = {} as Parameters<ActiveWork['severalEnded']>[0];
    work.removalStarted();
    work.several.add(several);
    work.severalEnded(several);
    expect(work.hasNoQueues).toBe(true);
    work.removalEnded();
    expect(seen).toEqual([false, true]);
  });
});
