import { Injectable } from '@nestjs/common';
import { firstValueFrom, lastValueFrom, NEVER, Observable, of, Subject, throwError, toArray } from 'rxjs';
import { take } from 'rxjs/operators';
import { LockBusyError, LockConfigurationError } from '../../../lib/engine/errors.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { until } from '../../support/until.js';
import { Section } from '../support/section.js';
import { startApp } from '../support/start-app.js';

@Injectable()
class Feed {
  readonly section = new Section();
  readonly source = new Subject<number>();
  /** The locks held when the source was subscribed to, emitted, and was torn down. */
  readonly seen: (string | undefined)[] = [];

  @DistributedLock('feed')
  values(...values: number[]): Observable<number> {
    return new Observable((subscriber) => {
      this.section.enter();
      setImmediate(() => {
        for (const value of values) subscriber.next(value);
        this.section.leave();
        subscriber.complete();
      });
    });
  }

  @DistributedLock('feed')
  live(): Observable<number> {
    return new Observable((subscriber) => {
      this.seen.push(currentLease()?.name);
      const subscription = this.source.subscribe(subscriber);
      return () => {
        this.seen.push(currentLease()?.name);
        subscription.unsubscribe();
      };
    });
  }

  @DistributedLock({ key: 'feed', returns: 'observable' })
  endless() {
    return new Observable<number>((subscriber) => {
      for (let i = 0; !subscriber.closed; i++) subscriber.next(i);
    });
  }

  @DistributedLock('feed')
  failing(): Observable<number> {
    return throwError(() => new RangeError('mine'));
  }

  @DistributedLock('feed')
  throwing(): Observable<number> {
    throw new RangeError('mine');
  }

  @DistributedLock({ key: 'feed', returns: 'observable' })
  async later() {
    return of(1, 2);
  }

  @DistributedLock({ key: 'feed', returns: 'observable' })
  async muchLater(ready: Promise<void>) {
    this.section.enter();
    await ready;
    return this.source.asObservable();
  }

  @DistributedLock({ key: 'feed', returns: 'observable' })
  notOne(): Observable<number> {
    return Promise.resolve(1) as never;
  }

  @DistributedLock('feed')
  async promised() {
    return of(1);
  }

  @DistributedLock({ key: 'feed', onBusy: 'skip' })
  skipping(): Observable<number | undefined> {
    return of(1);
  }

  @DistributedLock({ key: 'feed', onBusy: () => of(7, 8) })
  answering(): Observable<number> {
    return of(1);
  }

  @DistributedLock({ key: 'feed', onBusy: async () => 'value' })
  answeringLater(): Observable<unknown> {
    return of(1);
  }

  @DistributedLock({ key: 'feed', waitTime: 0 })
  impatient(): Observable<number> {
    return NEVER;
  }
}

describe('a decorated method that returns an Observable', () => {
  let app: Awaited<ReturnType<typeof startApp>>;
  let feed: Feed;
  const locked = () => app.locks.isLocked('feed');

  beforeEach(async () => {
    app = await startApp({ providers: [Feed] });
    feed = app.get(Feed);
  });
  afterEach(() => app.close());

  it('acquires nothing until somebody subscribes', async () => {
    feed.values(1);
    await new Promise(setImmediate);
    expect(await locked()).toBe(false);
    expect(feed.section.entered).toBe(0);
  });

  it('acquires for each subscription, one after the other', async () => {
    const values = feed.values(1, 2);
    const both = await Promise.all([lastValueFrom(values.pipe(toArray())), lastValueFrom(values.pipe(toArray()))]);
    expect(both).toEqual([
      [1, 2],
      [1, 2],
    ]);
    expect(feed.section).toMatchObject({ most: 1, entered: 2 });
  });

  it('is completed when the lock is free again', async () => {
    const lockedAtCompletion = await new Promise((resolve) => {
      feed.values(1).subscribe({ complete: () => resolve(locked()) });
    });
    expect(lockedAtCompletion).toBe(false);
  });

  it('holds the lock until the source completes', async () => {
    const received: number[] = [];
    feed.live().subscribe((value) => received.push(value));
    await until(() => feed.source.observed);
    feed.source.next(1);
    expect(await locked()).toBe(true);
    feed.source.complete();
    await until(async () => !(await locked()));
    expect(received).toEqual([1]);
  });

  it('frees the lock when it is unsubscribed', async () => {
    const subscription = feed.live().subscribe();
    await until(() => feed.source.observed);
    subscription.unsubscribe();
    expect(feed.source.observed).toBe(false);
    await until(async () => !(await locked()));
  });

  it('runs subscription and teardown in the scope of the lease', async () => {
    const subscription = feed.live().subscribe();
    await until(() => feed.source.observed);
    subscription.unsubscribe();
    expect(feed.seen).toEqual(['feed', 'feed']);
    expect(currentLease()).toBeUndefined();
  });

  it('stops a source that emits without end when its consumer has enough', async () => {
    expect(await lastValueFrom(feed.endless().pipe(take(3), toArray()))).toEqual([0, 1, 2]);
    await until(async () => !(await locked()));
  });

  it('stops waiting when it is unsubscribed, and never runs', async () => {
    await using lease = await app.locks.acquire('feed');
    const subscription = feed.live().subscribe();
    await until(async () => (await app.locks.inspect('feed')).waiting === 1);
    subscription.unsubscribe();
    await until(async () => (await app.locks.inspect('feed')).waiting === 0);
    await lease.release();
    await new Promise(setImmediate);
    expect(feed.seen).toEqual([]);
    expect(await locked()).toBe(false);
  });

  it('is unsubscribed before the acquisition began, and nothing happens', async () => {
    feed.live().subscribe().unsubscribe();
    await new Promise(setImmediate);
    expect(feed.seen).toEqual([]);
    await until(async () => !(await locked()));
  });

  it('does not run when it is unsubscribed the moment the lock is acquired', async () => {
    const later = (await feed.muchLater(Promise.resolve())) as Observable<number>;
    const subscription = later.subscribe();
    app.locks.on('acquired', () => subscription.unsubscribe());
    await until(() => subscription.closed);
    await until(async () => !(await locked()));
    expect(feed.section.entered).toBe(0);
  });

  it('does not subscribe to a source that comes after it was unsubscribed', async () => {
    let ready!: () => void;
    const late = feed.muchLater(new Promise((resolve) => (ready = resolve)));
    const subscription = ((await late) as Observable<number>).subscribe();
    await until(() => feed.section.occupied);
    subscription.unsubscribe();
    ready();
    await until(async () => !(await locked()));
    expect(feed.source.observed).toBe(false);
  });

  it.each(['failing', 'throwing'] as const)(
    'passes the error of a %s source on unchanged, and frees the lock',
    async (method) => {
      await expect(lastValueFrom(feed[method]())).rejects.toThrow(new RangeError('mine'));
      expect(await locked()).toBe(false);
    },
  );

  it('fails with LockLostError when the lease was lost meanwhile', async () => {
    const result = lastValueFrom(feed.live());
    await until(() => feed.source.observed);
    const warned = expect(result).rejects.toMatchObject({ name: 'LockLostError' });
    await app.locks.forceRelease('feed');
    feed.source.next(1);
    feed.source.complete();
    await warned;
  });

  it('takes a promise of an Observable when it is told what it returns', async () => {
    const later = (await feed.later()) as Observable<number>;
    expect(await lastValueFrom(later.pipe(toArray()))).toEqual([1, 2]);
  });

  it('says which option is missing when the kind was not known, or not right', async () => {
    await expect(feed.promised()).rejects.toThrow(LockConfigurationError);
    await expect(feed.promised()).rejects.toThrow(/^Feed\.promised .* set returns: 'observable'$/);
    await expect(lastValueFrom(feed.notOne())).rejects.toThrow(/^Feed\.notOne .* set returns: 'promise'$/);
    expect(await locked()).toBe(false);
  });

  describe('while somebody else holds the lock', () => {
    beforeEach(() => app.locks.acquire('feed'));
    afterEach(() => app.locks.forceRelease('feed'));

    it('fails with LockBusyError', async () => {
      await expect(firstValueFrom(feed.impatient())).rejects.toThrow(LockBusyError);
    });

    it("emits undefined for 'skip', so that a handler answers like one that returns nothing", async () => {
      expect(await lastValueFrom(feed.skipping().pipe(toArray()))).toEqual([undefined]);
    });

    it('emits what onBusy answers', async () => {
      expect(await lastValueFrom(feed.answering().pipe(toArray()))).toEqual([7, 8]);
      expect(await lastValueFrom(feed.answeringLater().pipe(toArray()))).toEqual(['value']);
    });
  });
});
