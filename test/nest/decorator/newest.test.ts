import { Injectable } from '@nestjs/common';
import { LockBusyError } from '../../../lib/engine/errors.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import type { DistributedLockOptions } from '../../../lib/nest/decorator/distributed-lock.options.js';
import { SingleFlight } from '../../../lib/nest/decorator/single-flight.decorator.js';
import { errorOf, latch } from '../../support/section.js';
import { until } from '../../support/until.js';
import { startApp } from '../support/start-app.js';

/** An index that is made from data that change while it is being made. */
@Injectable()
class SearchIndex {
  data = 0;
  index = 0;
  running = 0;
  end = latch();
  readonly superseded: (number | undefined)[] = [];

  @DistributedLock({ key: 'index', onBusy: 'newest' })
  async newest(): Promise<string | undefined> {
    return this.rebuild();
  }

  @DistributedLock({ key: 'limited', onBusy: 'newest', waitTime: 50 })
  async limited(): Promise<string | undefined> {
    return this.rebuild();
  }

  @DistributedLock({ key: 'rare', onBusy: 'newest', holdAtLeast: 300 })
  async rare(): Promise<string | undefined> {
    this.index = this.data;
    return 'done';
  }

  @DistributedLock({ key: 'skipping', onBusy: 'skip' })
  async skipping(): Promise<string | undefined> {
    return this.rebuild();
  }

  @SingleFlight({ key: 'joining', keepFor: '1m' })
  async joining(): Promise<string> {
    return this.rebuild();
  }

  private async rebuild() {
    const read = this.data;
    this.superseded.push(currentLease()?.superseded);
    this.running++;
    await this.end.promise;
    this.running--;
    this.index = read;
    return 'done';
  }
}

describe("onBusy: 'newest'", () => {
  let app: Awaited<ReturnType<typeof startApp>>;
  let search: SearchIndex;

  beforeEach(async () => {
    app = await startApp({ providers: [SearchIndex] });
    search = app.get(SearchIndex);
  });
  afterEach(async () => {
    search.end.open();
    await app.close();
  });

  /** Changes the data before each of three calls, of which the first has read its data before the others come. */
  async function changeThrice(call: () => Promise<unknown>) {
    search.data = 1;
    const calls = [call()];
    await until(() => search.running === 1);
    for (const data of [2, 3]) {
      search.data = data;
      calls.push(call());
    }
    return calls;
  }

  it('runs the first call and the last one, and the others return undefined at once', async () => {
    const calls = await changeThrice(() => search.newest());
    expect(await calls[1]).toBeUndefined();
    search.end.open();
    expect(await Promise.all(calls)).toEqual(['done', undefined, 'done']);
    expect(search.index).toBe(3);
    expect(search.superseded).toEqual([0, 1]);
  });

  it.each(['skipping', 'joining'] as const)('does not lose the last change, as %s does', async (method) => {
    const calls = await changeThrice(() => search[method]());
    search.end.open();
    await Promise.all(calls);
    expect(search.index).toBe(1);
  });

  it('lets the last change in once the time of holdAtLeast is over', async () => {
    const calls: Promise<unknown>[] = [];
    for (const data of [1, 2, 3]) {
      search.data = data;
      calls.push(search.rare());
      await until(() => search.index >= 1);
    }
    expect(search.index).toBe(1);
    expect(await Promise.all(calls)).toEqual(['done', undefined, 'done']);
    expect(search.index).toBe(3);
  });

  it('fails with LockBusyError when the waitTime of the newest call ends', async () => {
    const first = search.limited();
    await until(() => search.running === 1);
    const error = await errorOf(search.limited());
    expect(error).toBeInstanceOf(LockBusyError);
    expect(error.name).toBe('LockBusyError');
    search.end.open();
    await first;
  });

  it.each([
    [{ type: 'fair' }, "onBusy: 'newest' and type: 'fair' exclude each other"],
    [{ type: 'read' }, "onBusy: 'newest' and type: 'read' exclude each other"],
    [{ permits: 3 }, "onBusy: 'newest' and permits exclude each other"],
    [{ permits: () => 3 }, "onBusy: 'newest' and permits exclude each other"],
    [{ waitTime: 0 }, "onBusy: 'newest' and waitTime: 0 exclude each other"],
    [{ key: ['a', 'b'] }, "onBusy: 'newest' is for one name"],
  ])('refuses %j when the class is defined', (options, message) => {
    const given = { key: 'a', onBusy: 'newest', ...options } as DistributedLockOptions;
    const decorate = DistributedLock(given) as unknown as (...args: unknown[]) => void;
    class Wrong {
      async method() {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Wrong.prototype, 'method');
    expect(() => decorate(Wrong.prototype, 'method', descriptor)).toThrow(`Wrong.method: ${message}`);
  });
});
