import { Injectable } from '@nestjs/common';
import { firstValueFrom, type Observable, of } from 'rxjs';
import { LockAbortedError, LockConfigurationError } from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { SingleFlight } from '../../../lib/nest/decorator/single-flight.decorator.js';
import { until } from '../../support/until.js';
import { startApp } from '../support/start-app.js';

@Injectable()
class Orders {
  readonly own = new AbortController();
  ran = 0;

  @DistributedLock({ key: 'order', signal: (signal?: AbortSignal) => signal })
  async promise(_signal?: AbortSignal) {
    this.ran++;
  }

  @DistributedLock({ key: 'order', returns: 'observable', signal: (signal?: AbortSignal) => signal })
  observable(_signal?: AbortSignal): Observable<number> {
    this.ran++;
    return of(1);
  }

  @DistributedLock({ key: 'order', signal: (signal?: AbortSignal) => signal })
  async *iterable(_signal?: AbortSignal) {
    this.ran++;
    yield 1;
  }

  @SingleFlight({ key: 'order', signal: (signal?: AbortSignal) => signal })
  async flight(_signal?: AbortSignal) {
    this.ran++;
    return 1;
  }

  @DistributedLock({
    key: 'order',
    signal(this: Orders) {
      return this.own.signal;
    },
  })
  async ofInstance() {
    this.ran++;
  }

  @DistributedLock({ key: 'order', signal: () => 'never' as never })
  async wrong() {
    this.ran++;
  }
}

describe('the option signal', () => {
  let app: Awaited<ReturnType<typeof startApp>>;
  let orders: Orders;
  let lease: Lease;
  const waiting = async () => (await app.locks.inspect('order')).waiting;

  beforeEach(async () => {
    app = await startApp({ providers: [Orders] });
    orders = app.get(Orders);
    lease = await app.locks.acquire('order');
  });
  afterEach(async () => {
    await lease.release();
    await app.close();
  });

  const CALLS: [string, (signal?: AbortSignal) => Promise<unknown>][] = [
    ['a promise', (signal) => orders.promise(signal)],
    ['an Observable', (signal) => firstValueFrom(orders.observable(signal))],
    ['an async generator', (signal) => orders.iterable(signal).next()],
    ['a single flight', (signal) => orders.flight(signal)],
  ];

  it.each(CALLS)('ends the wait of %s, which never runs', async (_, call) => {
    const leaving = new AbortController();
    const left = call(leaving.signal);
    left.catch(() => {});
    await until(async () => (await waiting()) === 1);
    leaving.abort(new Error('gone'));
    await expect(left).rejects.toThrow(LockAbortedError);
    expect(await waiting()).toBe(0);
    await expect(call(AbortSignal.abort())).rejects.toThrow(LockAbortedError);
    expect(orders.ran).toBe(0);
  });

  it.each(CALLS)('may be undefined for %s', async (_, call) => {
    const served = call();
    await until(async () => (await waiting()) === 1);
    await lease.release();
    await served;
    expect(orders.ran).toBe(1);
  });

  it('does not stop a consumer from leaving', async () => {
    const rows = orders.iterable(new AbortController().signal);
    const step = rows.next();
    await until(async () => (await waiting()) === 1);
    expect(await rows.return()).toEqual({ value: undefined, done: true });
    await step;
    const subscription = orders.observable(new AbortController().signal).subscribe();
    await until(async () => (await waiting()) === 1);
    subscription.unsubscribe();
    await until(async () => (await waiting()) === 0);
    expect(orders.ran).toBe(0);
  });

  it('is called on the instance', async () => {
    const left = orders.ofInstance();
    left.catch(() => {});
    orders.own.abort();
    await expect(left).rejects.toThrow(LockAbortedError);
  });

  it('that is wrong is refused, naming the method', async () => {
    await expect(orders.wrong()).rejects.toThrow(
      /^Orders\.wrong: signal returned 'never'; it must return an AbortSignal/,
    );
    expect(() => {
      class Wrong {
        @DistributedLock({ key: 'a', signal: AbortSignal.timeout(5) as never })
        async run() {}
      }
      return Wrong;
    }).toThrow(
      new LockConfigurationError(
        'Wrong.run: @DistributedLock: signal is an object; it must be a function that returns an AbortSignal, because each call has its own',
      ),
    );
    expect(orders.ran).toBe(0);
  });
});
