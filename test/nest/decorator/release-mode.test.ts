import { Injectable } from '@nestjs/common';
import { lastValueFrom, Observable, of, toArray } from 'rxjs';
import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import type { DistributedLockOptions } from '../../../lib/nest/decorator/distributed-lock.options.js';
import { errorOf } from '../../support/section.js';
import { startApp } from '../support/start-app.js';

@Injectable()
class Orders {
  @DistributedLock({ key: 'order', release: 'background' })
  async ship(): Promise<string> {
    return 'shipped';
  }

  @DistributedLock({ key: 'order', release: 'background' })
  states(): Observable<string> {
    return of('packed', 'shipped');
  }

  @DistributedLock({ key: 'order', release: 'background' })
  async *lines(): AsyncGenerator<number> {
    yield 1;
    yield 2;
  }

  @DistributedLock({ key: 'order', release: 'background', holdAtLeast: 200, onBusy: 'skip' })
  async nightly(): Promise<string | undefined> {
    return 'done';
  }

  @DistributedLock('order')
  async byDefault(): Promise<void> {}

  @DistributedLock({ key: 'order', onLost: 'throw' })
  async strict(): Promise<void> {}
}

describe("@DistributedLock with release: 'background'", () => {
  /** Starts an application that records whether each release of its locks was confirmed. */
  const start = async (release?: 'background') => {
    const app = await startApp({ providers: [Orders] }, { backend: 'memory', shutdownTimeout: 10, release });
    const confirmed: boolean[] = [];
    app.locks.on('released', (event) => confirmed.push(event.confirmed));
    return { app, orders: app.get(Orders), confirmed };
  };

  it('does not wait for the release of a promise, an Observable or an iteration', async () => {
    const { app, orders, confirmed } = await start();
    expect(await orders.ship()).toBe('shipped');
    expect(await lastValueFrom(orders.states().pipe(toArray()))).toEqual(['packed', 'shipped']);
    const lines: number[] = [];
    for await (const line of orders.lines()) lines.push(line);
    for await (const line of orders.lines()) {
      lines.push(line);
      break;
    }
    expect(lines).toEqual([1, 2, 1]);
    expect(confirmed).toEqual([false, false, false, false]);
    await app.close();
  });

  it('keeps the lock for holdAtLeast', async () => {
    const { app, orders } = await start();
    expect(await orders.nightly()).toBe('done');
    expect(await orders.nightly()).toBeUndefined();
    await orders.byDefault();
    await app.close();
  });

  it("takes the module's release", async () => {
    const { app, orders, confirmed } = await start('background');
    await orders.byDefault();
    expect(confirmed).toEqual([false]);
    expect(await errorOf(orders.strict())).toBeInstanceOf(LockConfigurationError);
    await app.close();
  });

  it.each<[string, Partial<DistributedLockOptions>, string]>([
    ['another word', { release: 'later' as never }, "release is 'later'; it must be 'confirmed' or 'background'"],
    [
      "onLost: 'throw'",
      { release: 'background', onLost: 'throw' },
      "onLost: 'throw' and release: 'background' exclude",
    ],
  ])('refuses %s when the class is defined', (_, options, message) => {
    const define = () => {
      class Bad {
        @DistributedLock({ key: 'order', ...options })
        async run(): Promise<void> {}
      }
      return Bad;
    };
    expect(define).toThrow(LockConfigurationError);
    expect(define).toThrow(message);
    expect(define).toThrow('Bad.run');
  });
});
