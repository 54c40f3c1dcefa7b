import { ActiveWork } from '../../lib/engine/active-work.js';
import type { WaitingQueue } from '../../lib/engine/wait/outage-limit.js';

/** A lease, as far as it is counted. */
const leaseOf = (name: string) =>
  ({ name, previous: undefined, next: undefined }) as unknown as Parameters<ActiveWork['leases']['push']>[0];

/** A queue in which nobody or somebody waits. */
const queueOf = (name: string, isEmpty: boolean) =>
  ({ kind: 'reentrant', name, callers: { name, isEmpty } }) as unknown as Parameters<ActiveWork['queues']['add']>[0];

describe('the unfinished work of a service', () => {
  it('includes bodies that run', () => {
    const work = new ActiveWork();
    expect(work.isIdle).toBe(true);
    work.bodyStarted();
    work.bodyStarted();
    expect(work.isIdle).toBe(false);
    work.bodyEnded(0);
    expect(work.isIdle).toBe(false);
    work.bodyEnded(0);
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

  it('includes leases that were not released', () => {
    const work = new ActiveWork();
    const lease = leaseOf('order');
    work.leases.push(lease);
    expect(work.isIdle).toBe(false);
    work.leases.remove(lease);
    expect(work.isIdle).toBe(true);
  });

  it('is over for a caller when only its own leases and their bodies are left', () => {
    const work = new ActiveWork();
    const [own, other] = [leaseOf('own'), leaseOf('other')];
    expect(work.isIdleBut(new Set())).toBe(true);
    work.leases.push(own);
    work.bodyStarted();
    expect(work.isIdleBut(new Set([own]))).toBe(true);
    expect(work.isIdleBut(new Set())).toBe(false);
    work.leases.push(other);
    expect(work.isIdleBut(new Set([own]))).toBe(false);
    work.leases.remove(other);
    work.bodyStarted(); // of somebody who has released the lease already
    expect(work.isIdleBut(new Set([own]))).toBe(false);
    work.bodyEnded(0);
    expect(work.isIdleBut(new Set([own]))).toBe(true);
  });

  it('is not answered while there is a queue, an acquisition of several locks, or a removal', () => {
    const work = new ActiveWork();
    const several = {} as Parameters<ActiveWork['severalEnded']>[0];
    const queue = queueOf('order', true);
    expect([work.isAnswered, work.hasNoQueues, work.isEmpty]).toEqual([true, true, true]);
    work.queues.add(queue);
    expect([work.isAnswered, work.hasNoQueues, work.isEmpty]).toEqual([false, false, false]);
    work.queues.remove(queue);
    work.several.add(several);
    expect([work.isAnswered, work.hasNoQueues, work.isEmpty]).toEqual([false, false, false]);
    work.severalEnded(several);
    work.removalStarted();
    expect([work.isAnswered, work.hasNoQueues, work.isEmpty]).toEqual([false, true, true]);
  });

  it('has callers that wait for a semaphore or a latch, which are not acquisitions', () => {
    const work = new ActiveWork();
    work.permitQueues.set('latch done', {} as never);
    expect([work.isAnswered, work.isEmpty]).toEqual([true, false]);
  });

  it('has waiting callers of all kinds, those of several locks first', () => {
    const work = new ActiveWork();
    const line = { name: 'permits' } as unknown as WaitingQueue;
    work.permitQueues.set('latch done', { callers: line } as never);
    work.queues.add(queueOf('idle', true));
    work.queues.add(queueOf('busy', false));
    work.several.add({ name: 'several' } as never);
    const seen: unknown[] = [];
    work.forEach((queue) => {
      seen.push((queue as { name?: string }).name);
      work.permitQueues.clear(); // as if they were refused
      work.several.clear();
    });
    expect(seen).toEqual(['several', 'busy']);
    seen.length = 0;
    work.permitQueues.set('latch done', { callers: line } as never);
    work.forEach((queue) => void seen.push((queue as { name?: string }).name));
    expect(seen).toEqual(['busy', 'permits']);
  });
});
