import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { LockBusyError, LockConfigurationError, LockLostError } from '../../../lib/engine/errors.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { until } from '../../support/until.js';
import { Section } from '../support/section.js';
import { startApp } from '../support/start-app.js';

/** A decorator that hides the kind of its method, as those of tracing and transactions do. */
const Traced = (): MethodDecorator => (_target, _key, descriptor: PropertyDescriptor) => {
  const body = descriptor.value;
  descriptor.value = function (this: unknown, ...args: unknown[]) {
    return body.apply(this, args);
  };
};

@Injectable()
class Export {
  readonly section = new Section();
  readonly seen: (string | undefined)[] = [];

  @DistributedLock('export')
  async *rows(count: number): AsyncGenerator<number, string, string | undefined> {
    this.section.enter();
    try {
      for (let row = 1; row <= count; row++) {
        await Promise.resolve();
        this.seen.push(currentLease()?.name);
        const answer = yield row;
        if (answer !== undefined) this.seen.push(answer);
      }
      return 'end';
    } catch (error) {
      this.seen.push((error as Error).message);
      throw error;
    } finally {
      this.seen.push(currentLease()?.name);
      this.section.leave();
    }
  }

  @DistributedLock({ key: 'export', returns: 'iterable' })
  plain(): AsyncIterable<number> {
    let row = 0;
    return { [Symbol.asyncIterator]: () => ({ next: async () => ({ value: ++row, done: row > 2 }) }) };
  }

  @DistributedLock('export')
  unknown(): AsyncIterable<number> {
    return this.plain();
  }

  @DistributedLock({ key: 'export', waitTime: 0 })
  @Traced()
  async *traced() {
    yield 1;
  }

  @DistributedLock({ key: 'export', returns: 'iterable' })
  @Traced()
  async *tracedAndSaid() {
    yield 1;
  }

  @DistributedLock('export')
  async promised() {
    return this.rows(1);
  }

  @DistributedLock({ key: 'export', returns: 'iterable' })
  async later(): Promise<AsyncIterable<number>> {
    return this.rows(2);
  }

  @DistributedLock({ key: 'export', returns: 'iterable' })
  notOne(): AsyncIterable<number> {
    return [1] as never;
  }

  @DistributedLock({ key: 'export', onBusy: 'skip' })
  async *skipping() {
    yield 1;
  }

  @DistributedLock({ key: 'export', onBusy: () => [7, 8] })
  async *answering() {
    yield 1;
  }

  @DistributedLock({ key: 'export', onBusy: () => 7 })
  async *answeringWrongly() {
    yield 1;
  }

  @DistributedLock({ key: 'export', waitTime: 0 })
  async *impatient() {
    yield 1;
  }
}

const all = async <T>(items: AsyncIterable<T>) => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};

describe('a decorated method that returns an AsyncIterable', () => {
  let app: Awaited<ReturnType<typeof startApp>>;
  let service: Export;
  const locked = () => app.locks.isLocked('export');

  beforeEach(async () => {
    app = await startApp({ providers: [Export] });
    service = app.get(Export);
  });
  afterEach(() => app.close());

  it('acquires at the first next(), and holds the lock until it is exhausted', async () => {
    const rows = service.rows(2);
    expect(await locked()).toBe(false);
    expect(await rows.next()).toEqual({ value: 1, done: false });
    expect(await locked()).toBe(true);
    expect(await rows.next()).toEqual({ value: 2, done: false });
    expect(await rows.next()).toEqual({ value: 'end', done: true });
    expect(await locked()).toBe(false);
    expect(await rows.next()).toEqual({ value: undefined, done: true });
  });

  it('runs one iteration after the other', async () => {
    expect(await Promise.all([all(service.rows(3)), all(service.rows(2))])).toEqual([
      [1, 2, 3],
      [1, 2],
    ]);
    expect(service.section).toMatchObject({ most: 1, entered: 2 });
  });

  it('runs each step in the scope of the lease, and its consumer outside of it', async () => {
    for await (const _row of service.rows(2)) expect(currentLease()).toBeUndefined();
    expect(service.seen).toEqual(['export', 'export', 'export']);
  });

  it('frees the lock when the consumer leaves its loop', async () => {
    for await (const _row of service.rows(9)) break;
    expect(await locked()).toBe(false);
    expect(service.seen).toEqual(['export', 'export']);
    expect(service.section.occupied).toBe(false);
  });

  it('acquires nothing when it is closed before the first next()', async () => {
    const rows = service.rows(2);
    expect(await rows.return('never')).toEqual({ value: 'never', done: true });
    expect(await rows.next()).toEqual({ value: undefined, done: true });
    expect(service.section.entered).toBe(0);
    expect(await locked()).toBe(false);
  });

  it('passes to the body what its consumer sends and throws', async () => {
    const rows = service.rows(5);
    await rows.next();
    await rows.next('hello');
    await expect(rows.throw(new RangeError('yours'))).rejects.toThrow(new RangeError('yours'));
    expect(service.seen).toEqual(['export', 'hello', 'export', 'yours', 'export']);
    expect(await locked()).toBe(false);
  });

  it('fails with LockLostError when the lease was lost meanwhile', async () => {
    const rows = service.rows(1);
    await rows.next();
    await app.locks.forceRelease('export');
    await expect(rows.next()).rejects.toThrow(LockLostError);
  });

  it('passes the error of the body on, although the lease was lost meanwhile', async () => {
    const rows = service.rows(1);
    await rows.next();
    await app.locks.forceRelease('export');
    await expect(rows.throw(new RangeError('mine'))).rejects.toThrow(new RangeError('mine'));
  });

  it('takes any AsyncIterable when it is told what it returns', async () => {
    expect(await all(service.plain())).toEqual([1, 2]);
    expect(await all((await service.later()) as AsyncIterable<number>)).toEqual([1, 2]);
    expect(await locked()).toBe(false);
  });

  it('says which option is missing when the kind was not known, or not right', async () => {
    const call = async () => service.unknown();
    await expect(call()).rejects.toThrow(LockConfigurationError);
    await expect(call()).rejects.toThrow(/^Export\.unknown .* set returns: 'iterable'$/);
    await expect(service.promised()).rejects.toThrow(/^Export\.promised .* set returns: 'iterable'$/);
    await expect(all(service.notOne())).rejects.toThrow(/^Export\.notOne .* set returns: 'promise'$/);
    expect(await locked()).toBe(false);
  });

  it('says which option is missing where another decorator hides the generator', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    try {
      const missing = /^Export\.traced .* set returns: 'iterable'$/;
      await expect(all(service.traced())).rejects.toThrow(missing);
      await until(async () => !(await locked()));
      const lease = await app.locks.acquire('export');
      await expect(all(service.traced())).rejects.toThrow(missing);
      await lease.release();
      await expect((async () => service.traced())()).rejects.toThrow(missing);
      await new Promise(setImmediate);
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', note);
    }
    expect(await all(service.tracedAndSaid())).toEqual([1]);
  });

  describe('while somebody else holds the lock', () => {
    let lease: Lease;
    beforeEach(async () => {
      lease = await app.locks.acquire('export');
    });
    afterEach(() => lease.release());

    it('fails with LockBusyError at the first next()', async () => {
      await expect(service.impatient().next()).rejects.toThrow(LockBusyError);
    });

    it("is empty for 'skip'", async () => {
      expect(await all(service.skipping())).toEqual([]);
    });

    it('gives the items of the answer', async () => {
      expect(await all(service.answering())).toEqual([7, 8]);
      await expect(all(service.answeringWrongly())).rejects.toThrow(/^Export\.answeringWrongly: onBusy/);
    });

    it('waits at the first next() for its turn', async () => {
      const first = service.rows(1).next();
      await until(async () => (await app.locks.inspect('export')).waiting === 1);
      await lease.release();
      expect(await first).toEqual({ value: 1, done: false });
    });
  });

  describe('that is left while it waits for the lock', () => {
    const waiting = async () => (await app.locks.inspect('export')).waiting;
    let lease: Lease;
    beforeEach(async () => {
      lease = await app.locks.acquire('export');
    });
    afterEach(() => lease.release());

    it('ends the wait, and its body never runs', async () => {
      const iterations = Array.from({ length: 50 }, () => service.rows(1));
      const steps = iterations.map((rows) => rows.next());
      await until(async () => (await waiting()) === 50);

      const left = await Promise.all(iterations.map((rows) => rows.return('left')));
      expect(left).toEqual(iterations.map(() => ({ value: 'left', done: true })));
      expect(await Promise.all(steps)).toEqual(steps.map(() => ({ value: undefined, done: true })));
      expect(await waiting()).toBe(0);
      await lease.release();
      expect(await locked()).toBe(false);
      expect(service.section.entered).toBe(0);
    });

    it('ends the wait when its consumer throws into it', async () => {
      const rows = service.rows(1);
      const step = rows.next();
      await until(async () => (await waiting()) === 1);
      await expect(rows.throw(new RangeError('gone'))).rejects.toThrow(new RangeError('gone'));
      expect(await step).toEqual({ value: undefined, done: true });
      expect(await waiting()).toBe(0);
    });

    it.each([undefined, new RangeError('the client is gone')])(
      'ends with the stream that reads it (%s)',
      async (error) => {
        const stream = Readable.from(service.rows(1));
        stream.on('error', () => {});
        stream.resume();
        await until(async () => (await waiting()) === 1);
        const closed = new Promise((resolve) => stream.once('close', resolve));
        stream.destroy(error);
        await closed;
        expect(await waiting()).toBe(0);
        expect(service.section.entered).toBe(0);
      },
    );

    it('gives back a lock that was granted at the same moment', async () => {
      const rows = service.rows(1);
      const step = rows.next();
      await until(async () => (await waiting()) === 1);
      const released = lease.release();
      await until(async () => (await waiting()) === 0);
      const left = rows.return('left');
      await released;
      // The body may have begun, but then it has ended as well.
      expect(await left).toEqual({ value: 'left', done: true });
      await step;
      expect(service.section.occupied).toBe(false);
      expect(await locked()).toBe(false);
    });
  });
});
