import { LockBusyError, LockConfigurationError, LockLostError } from '../../lib/engine/errors.js';
import type { PermitExpirableSemaphore } from '../../lib/handles/permit-semaphore.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { ms, nothingIsLeft, openVirtualWorld, openWorld, STORES } from '../support/lock-world.js';
import { errorOf, latch, Section } from '../support/section.js';
import { until } from '../support/until.js';
import { refused } from '../support/watched/watched-backend.js';

const KINDS = ['getSemaphore', 'getPermitExpirableSemaphore'] as const;

describe.each(STORES)('withPermit() of a semaphore in %s', (store) => {
  const world = openWorld(store);
  const semaphoreOf = (locks: LockService, kind: (typeof KINDS)[number], permits = 1) =>
    locks[kind]('mail', { permits }) as PermitExpirableSemaphore;

  it.each(KINDS)('returns the result of its body, and gives the permit back: %s', async (kind) => {
    const process = await world.process();
    const semaphore = semaphoreOf(process.locks, kind);
    for (let n = 0; n < 3; n++) {
      const result = await semaphore.withPermit(async () => {
        expect(await semaphore.availablePermits()).toBe(0);
        return n;
      });
      expect(result).toBe(n);
    }
    expect(await semaphore.availablePermits()).toBe(1);
    await nothingIsLeft(process);
  });

  it.each(KINDS)('runs as many bodies at a time as there are permits, in all processes: %s', async (kind) => {
    const services = await world.services(3);
    let running = 0;
    let most = 0;
    const body = async () => {
      most = Math.max(most, ++running);
      await new Section().pass('', 5);
      running--;
    };
    const calls = Array.from({ length: 30 }, (_, n) => semaphoreOf(services[n % 3], kind, 2).withPermit(body));
    await Promise.all(calls);
    expect(most).toBe(2);
  });

  it.each(KINDS)('fails with the error of its body, and gives the permit back: %s', async (kind) => {
    const { locks } = await world.process();
    const semaphore = semaphoreOf(locks, kind);
    const fails = () => {
      throw new Error('the mail server is away');
    };
    for (const body of [fails, async () => fails()])
      expect((await errorOf(semaphore.withPermit(body))).message).toBe('the mail server is away');
    expect(await semaphore.availablePermits()).toBe(1);
  });

  it('fails with the error of its body also if the permit is not held any more', async () => {
    const { locks } = await world.process();
    const semaphore = semaphoreOf(locks, 'getPermitExpirableSemaphore');
    const error = await errorOf(
      semaphore.withPermit(async ({ id }) => {
        await semaphore.release(id);
        throw new Error('the mail server is away');
      }),
    );
    expect(error.message).toBe('the mail server is away');
  });

  it('fails with LockLostError if its body succeeds and somebody else has released the permit', async () => {
    const [ann, bob] = await world.services(2);
    const semaphore = semaphoreOf(ann, 'getPermitExpirableSemaphore');
    const error = await errorOf(
      semaphore.withPermit(async ({ id }) => {
        await semaphoreOf(bob, 'getPermitExpirableSemaphore').release(id);
      }),
    );
    expect(error).toBeInstanceOf(LockLostError);
    expect(error.message).toMatch(/^A permit of the semaphore 'mail' was lost: it no longer existed at its release/);
  });

  it.each(KINDS)('fails when no permit is available in time: %s', async (kind) => {
    const { locks } = await world.process();
    const semaphore = semaphoreOf(locks, kind);
    const end = latch();
    let isIn = false;
    const first = semaphore.withPermit(() => {
      isIn = true;
      return end.promise;
    });
    await until(() => isIn);
    const body = () => expect(true).toBe(false);
    expect(await errorOf(semaphore.withPermit({ waitTime: 0 }, body))).toBeInstanceOf(LockBusyError);
    expect(await errorOf(semaphore.withPermit({ waitTime: 20 }, body))).toBeInstanceOf(LockBusyError);
    end.open();
    await first;
  });

  it.each<[unknown[], string]>([
    [[], 'the last argument must be a function'],
    [[{ waitTime: 5 }], 'the last argument must be a function'],
    [[5, () => 1], 'the options must be an object'],
    [[{ leaseTime: 5 }, () => 1], "there is no option 'leaseTime'; there are waitTime, outageTimeout, signal"],
    [[{ waitTime: 'soon' }, () => 1], 'waitTime'],
  ])('refuses %p', async (args, message) => {
    const { locks } = await world.process();
    for (const kind of KINDS) {
      const semaphore = semaphoreOf(locks, kind) as unknown as { withPermit(...args: unknown[]): Promise<unknown> };
      const error = await errorOf(semaphore.withPermit(...args));
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(error.message).toMatch(/^withPermit\(\) of the semaphore 'mail': /);
      expect(error.message).toContain(message);
    }
  });
});

describe('the permit of withPermit()', () => {
  const world = openVirtualWorld();

  const lose = async (onLost: 'throw' | 'warn') => {
    const { locks, backend, runtime, logger } = await world.process({ watchdogTimeout: ms(3_000), onLost });
    const semaphore = locks.getPermitExpirableSemaphore('licences', { permits: 1 });
    const end = latch();
    const seen: unknown[] = [];
    const done = semaphore.withPermit(async (permit) => {
      seen.push(permit.held, permit.signal.aborted);
      await end.promise;
      seen.push(permit.held, permit.signal.aborted, permit.signal.reason);
      expect(() => permit.assertHeld()).toThrow(LockLostError);
      return 'done';
    });
    done.catch(() => {});
    await runtime.advance(10_000);
    expect(seen).toEqual([true, false]);
    backend.synchronizerRequests.disturb(refused, 'renewPermits');
    await runtime.advance(5_000);
    backend.synchronizerRequests.heal();
    end.open();
    const result = await runtime.until(done.catch((error: Error) => error));
    expect(seen.slice(2)).toEqual([false, true, expect.any(LockLostError)]);
    return { result, logger };
  };

  it('is renewed; its signal aborts when it is lost, and the call fails', async () => {
    const { result } = await lose('throw');
    expect(result).toBeInstanceOf(LockLostError);
  });

  it("is reported in the log when it is lost with onLost: 'warn'", async () => {
    const { result, logger } = await lose('warn');
    expect(result).toBe('done');
    expect(logger.warnings.at(-1)).toMatch(/^A permit of the semaphore 'licences' was lost: /);
  });

  it.each(KINDS)('does not hide the result when it cannot be given back, which is an event: %s', async (kind) => {
    const { locks, backend, runtime } = await world.process();
    const errors: Error[] = [];
    locks.on('error', (error) => errors.push(error));
    const semaphore = locks[kind]('licences', { permits: 1 }) as PermitExpirableSemaphore;
    const done = semaphore.withPermit(() => {
      backend.synchronizerRequests.disturb(refused, 'addPermits', 'giveLeasedPermits');
      return 'done';
    });
    expect(await runtime.until(done, 120_000)).toBe('done');
    expect(errors).toHaveLength(1);
  });
});
