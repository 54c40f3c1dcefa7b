import { Injectable } from '@nestjs/common';
import { LockLostError } from '../../../lib/engine/errors.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { until } from '../../support/until.js';
import { Section } from '../support/section.js';
import { sharedMemory, startApp } from '../support/start-app.js';

const section = new Section();

@Injectable()
class Jobs {
  @DistributedLock({ key: 'nightly', holdAtLeast: '300ms', onBusy: 'skip' })
  async nightly(): Promise<string | undefined> {
    return 'done';
  }

  @DistributedLock({ key: 'nightly', holdAtLeast: '1m' })
  async failing() {
    throw new RangeError('mine');
  }

  @DistributedLock({ key: 'short', leaseTime: 100 })
  async short() {
    const lease = currentLease();
    await until(() => lease?.signal.aborted);
    return section.visit('done');
  }

  @DistributedLock({ key: 'endless', holdAtMost: 100 })
  async endless() {
    const lease = currentLease();
    await until(() => lease?.signal.aborted);
    return String(lease?.signal.reason);
  }

  @DistributedLock({ key: 'tolerant', leaseTime: 100, onLost: 'warn' })
  async tolerant() {
    const lease = currentLease();
    await until(() => lease?.signal.aborted);
    return 'done';
  }

  @DistributedLock({ key: 'reading', type: 'read' })
  async read() {
    await section.visit();
  }

  @DistributedLock({ key: 'reading', type: 'write' })
  async write() {
    await section.visit();
  }

  @DistributedLock({ key: 'token', type: 'fenced' })
  async token() {
    return currentLease()?.fencingToken as number;
  }

  @DistributedLock({ key: 'queue', type: 'fair' })
  async fair(number: number) {
    await section.visit();
    return number;
  }
}

describe('how long and how a decorated method holds its lock', () => {
  let options: ReturnType<typeof sharedMemory>;
  let app: Awaited<ReturnType<typeof startApp>>;
  let jobs: Jobs;
  beforeEach(async () => {
    Object.assign(section, new Section());
    options = sharedMemory();
    app = await startApp({ providers: [Jobs] }, options());
    jobs = app.get(Jobs);
  });
  afterEach(() => app.close());

  it('keeps it for holdAtLeast when the method ends earlier', async () => {
    const began = performance.now();
    expect(await jobs.nightly()).toBe('done');
    expect(await jobs.nightly()).toBeUndefined();
    await until(async () => !(await app.locks.isLocked('nightly')));
    expect(performance.now() - began).toBeGreaterThan(290);
    expect(await jobs.nightly()).toBe('done');
  });

  it('keeps it, too, when the method failed, and through a shutdown', async () => {
    await until(async () => !(await app.locks.isLocked('nightly')));
    await expect(jobs.failing()).rejects.toThrow(new RangeError('mine'));
    await app.close();
    const next = await startApp({}, options());
    expect(await next.locks.isLocked('nightly')).toBe(true);
    await next.locks.forceRelease('nightly');
    await next.close();
  });

  it('aborts the signal after holdAtMost, and releases the lock when the method has ended', async () => {
    expect(await jobs.endless()).toContain("the lock 'endless' has run for longer than holdAtMost (100 ms)");
    await until(async () => !(await app.locks.isLocked('endless')));
  });

  it('refuses a holdAtLeast that is longer than holdAtMost', () => {
    expect(() => {
      class Wrong {
        @DistributedLock({ key: 'a', holdAtLeast: '1m', holdAtMost: '30s' })
        async run() {}
      }
      return Wrong;
    }).toThrow('Wrong.run: holdAtLeast is longer than holdAtMost');
  });

  it('fails with LockLostError when a fixed leaseTime ends before the method does', async () => {
    await expect(jobs.short()).rejects.toThrow(LockLostError);
    expect(section.entered).toBe(1);
  });

  it("gives the result nevertheless with onLost: 'warn'", async () => {
    expect(await jobs.tolerant()).toBe('done');
  });

  it('lets readers in together, and writers alone', async () => {
    const open = section.shut();
    const readers = Promise.all([jobs.read(), jobs.read()]);
    await until(() => section.most === 2);
    const writer = jobs.write();
    open();
    await readers;
    await writer;
    expect(section).toMatchObject({ most: 2, entered: 3 });
    section.most = 0;
    await Promise.all([jobs.write(), jobs.write()]);
    expect(section.most).toBe(1);
  });

  it('gives growing fencing tokens', async () => {
    const [first, second] = [await jobs.token(), await jobs.token()];
    expect(second).toBeGreaterThan(first);
  });

  it('serves fair locks in the order of the calls', async () => {
    const order: number[] = [];
    await Promise.all([1, 2, 3].map(async (number) => order.push(await jobs.fair(number))));
    expect(order).toEqual([1, 2, 3]);
    expect(section.most).toBe(1);
  });
});
