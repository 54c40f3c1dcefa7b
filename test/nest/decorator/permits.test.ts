import { Injectable } from '@nestjs/common';
import { LockBusyError, LockConfigurationError } from '../../../lib/engine/errors.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import type { DistributedLockOptions } from '../../../lib/nest/decorator/distributed-lock.options.js';
import { errorOf, latch } from '../../support/section.js';
import { until } from '../../support/until.js';
import { startApp } from '../support/start-app.js';

interface Tenant {
  readonly id: string;
  readonly most: number;
}

@Injectable()
class Exports {
  readonly most = 2;
  inside = 0;
  end = latch();

  @DistributedLock({ key: 'export', permits: 3 })
  async three() {
    await this.run();
  }

  @DistributedLock({ key: 'export:#<args[0].id>', permits: (tenant: Tenant) => tenant.most, waitTime: 0 })
  async ofTenant(_tenant: Tenant) {
    await this.run();
  }

  @DistributedLock({
    key: 'own',
    permits(this: Exports) {
      return this.most;
    },
    onBusy: 'skip',
  })
  async own(): Promise<string | undefined> {
    await this.run();
    return 'done';
  }

  @DistributedLock({ key: 'iterated', permits: 2, waitTime: 0 })
  async *iterated() {
    yield currentLease()?.fencingToken;
    await this.run();
  }

  @DistributedLock({ key: ['a', 'b'].map((name) => `sku:${name}`)[0], permits: 2 })
  async outer() {
    return this.inner();
  }

  @DistributedLock({ key: 'sku:a', permits: 2 })
  async inner() {
    return currentLease()?.owner;
  }

  @DistributedLock({ key: 'sku:#<args[*]>', permits: 2 })
  async several(..._skus: string[]) {}

  private async run() {
    this.inside++;
    await this.end.promise;
    this.inside--;
  }
}

describe('the option permits', () => {
  let app: Awaited<ReturnType<typeof startApp>>;
  let exports: Exports;

  beforeEach(async () => {
    app = await startApp({ providers: [Exports] });
    exports = app.get(Exports);
  });
  afterEach(async () => {
    exports.end.open();
    await app.close();
  });

  it('lets n calls run at a time', async () => {
    const calls = Array.from({ length: 5 }, () => exports.three());
    await until(() => exports.inside === 3);
    const { type, owners, waiting } = await app.locks.inspect('export');
    expect({ type, owners: owners.length, waiting }).toEqual({ type: 'permits', owners: 3, waiting: 2 });
    exports.end.open();
    await Promise.all(calls);
    expect((await app.locks.inspect('export')).type).toBe('free');
  });

  it('may depend on the arguments', async () => {
    const pro = { id: 'pro', most: 3 };
    const free = { id: 'free', most: 1 };
    const calls = [exports.ofTenant(pro), exports.ofTenant(pro), exports.ofTenant(pro), exports.ofTenant(free)];
    await until(() => exports.inside === 4);
    expect(await errorOf(exports.ofTenant(free))).toBeInstanceOf(LockBusyError);
    expect(await errorOf(exports.ofTenant(pro))).toBeInstanceOf(LockBusyError);
    exports.end.open();
    await Promise.all(calls);
  });

  it('is a function of the instance, too, and answers with onBusy', async () => {
    const calls = [exports.own(), exports.own()];
    await until(() => exports.inside === 2);
    expect(await exports.own()).toBeUndefined();
    exports.end.open();
    expect(await Promise.all(calls)).toEqual(['done', 'done']);
  });

  it('holds for as long as an iteration lasts', async () => {
    const iterations = [exports.iterated(), exports.iterated(), exports.iterated()];
    const tokens = [await iterations[0].next(), await iterations[1].next()].map(({ value }) => value);
    expect(new Set(tokens).size).toBe(2);
    expect(await errorOf(iterations[2].next())).toBeInstanceOf(LockBusyError);
    exports.end.open();
    for (const iteration of iterations.slice(0, 2)) await iteration.return(undefined);
  });

  it('takes no second permit for a call from inside', async () => {
    expect(await exports.outer()).toMatch(/:/);
  });

  it('refuses a number that the function may not return, naming the method', async () => {
    const error = await errorOf(exports.ofTenant({ id: 'a', most: 0 }));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toBe('Exports.ofTenant: permits is 0; it must be a whole number from 1 to 1000');
  });

  it('refuses a call that wants several names', async () => {
    const error = await errorOf(exports.several('a', 'b'));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toContain('Exports.several');
    await exports.several('a');
  });

  it.each([
    [{ permits: 0 }, 'permits is 0; it must be a whole number from 1 to 1000'],
    [{ permits: '3' }, "permits is '3'; it must be a whole number from 1 to 1000"],
    [{ permits: 3, type: 'fair' }, "permits and type: 'fair' exclude each other"],
    [{ permits: () => 3, type: 'write' }, "permits and type: 'write' exclude each other"],
    [{ permits: 3, key: ['a', 'b'] }, 'permits is for one name'],
  ])('refuses %j when the class is defined', (options, message) => {
    const decorate = DistributedLock({ key: 'a', ...options } as DistributedLockOptions) as unknown as (
      ...args: unknown[]
    ) => void;
    class Wrong {
      async method() {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Wrong.prototype, 'method');
    expect(() => decorate(Wrong.prototype, 'method', descriptor)).toThrow(`Wrong.method: ${message}`);
  });
});
