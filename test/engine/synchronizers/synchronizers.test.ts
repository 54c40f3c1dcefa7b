import { BackendError } from '../../../lib/backends/backend-error.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import type { RequestId } from '../../../lib/backends/synchronizer-backend.js';
import {
  LockAbortedError,
  LockBusyError,
  LockConfigurationError,
  LockKeyError,
  LockLostError,
  LockUnavailableError,
} from '../../../lib/engine/errors.js';
import { Services } from '../../../lib/engine/services.js';
import type { PermitLease } from '../../../lib/engine/synchronizers/permit-lease.js';
import type { Synchronizer } from '../../../lib/engine/synchronizers/synchronizer.js';
import { addCountedPermits, setPermits, trySetCount } from '../../../lib/engine/synchronizers/synchronizer-changes.js';
import { Synchronizers } from '../../../lib/engine/synchronizers/synchronizers.js';
import { FOREVER, type Milliseconds } from '../../../lib/engine/terms/duration.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { errorOf, latch } from '../../support/section.js';
import { refused, WatchedBackend } from '../../support/watched/watched-backend.js';

const WATCHDOG = 6_000;

describe('the semaphores and latches of one service', () => {
  let runtime: VirtualRuntime;
  let backend: WatchedBackend;
  let logger: RecordingLogger;
  let services: Services;
  let synchronizers: Synchronizers;
  let errors: Error[];
  let mail: Synchronizer;
  let cards: Synchronizer;
  let done: Synchronizer;
  const servicesOn = (on: object) =>
    new Services({
      ...ENGINE_DEFAULTS,
      backend: on as WatchedBackend,
      runtime,
      logger,
      clientId: 'client',
      watchdogTimeout: ms(WATCHDOG),
      waiterTimeout: ms(5_000),
      shutdownTimeout: ms(0),
    });
  beforeEach(() => {
    runtime = new VirtualRuntime();
    logger = new RecordingLogger();
    backend = new WatchedBackend(new MemoryBackend({ runtime, store: new MemoryStore() }), runtime);
    services = servicesOn(backend);
    synchronizers = new Synchronizers(services, WATCHDOG);
    errors = [];
    services.events.on('error', (error) => void errors.push(error));
    mail = synchronizers.named('mail', 'semaphore', 'getSemaphore', 2);
    cards = synchronizers.named('cards', 'semaphore', 'getPermitExpirableSemaphore', 2);
    done = synchronizers.named('done', 'latch', 'getCountDownLatch');
  });

  const terms = (waitTime: number = FOREVER, signal?: AbortSignal) => ({
    waitTime: ms(waitTime),
    outageTimeout: FOREVER,
    signal,
  });
  const leased = (leaseTime?: number) => ({ ...terms(), leaseTime: leaseTime as Milliseconds | undefined });
  const take = (permits = 1, waitTime?: number) => synchronizers.takePermits(mail, permits, terms(waitTime));
  const available = (semaphore = mail) => synchronizers.ask(semaphore, (port, key) => port.availablePermits(key));
  /** The commands so far, without those that only compare the number of permits. */
  const commands = () => backend.synchronizerRequests.commands.filter((command) => command !== 'inspect');

  it('have names, keys, and words for errors', () => {
    expect(mail).toEqual({
      name: 'mail',
      key: 'lock:mail',
      what: "the semaphore 'mail'",
      method: 'getSemaphore',
      initial: 2,
    });
    expect(done).toMatchObject({ what: "the latch 'done'", initial: undefined });
    const bad = () => synchronizers.named('a{', 'semaphore', 'getSemaphore');
    expect(bad).toThrow(LockKeyError);
    expect(bad).toThrow("getSemaphore(): the lock name 'a{'");
  });

  it('do not exist on a backend without them', () => {
    const without = new Synchronizers(servicesOn({ description: 'a quorum' }), WATCHDOG);
    const named = () => without.named('mail', 'semaphore', 'getSemaphore');
    expect(named).toThrow(LockConfigurationError);
    expect(named).toThrow('a quorum does not support semaphores and latches');
  });

  it('serve callers who wait, and keep nothing for them', async () => {
    await runtime.until(take(2));
    const waiting = take();
    await runtime.settle();
    expect(synchronizers.activity()).toEqual({ permitQueues: 1, changes: 0, renewedPermits: 0 });
    const released = synchronizers.change(mail, addCountedPermits, 1);
    expect(synchronizers.activity().changes).toBe(1);
    await runtime.until(Promise.all([waiting, released]));
    expect(synchronizers.activity()).toEqual({ permitQueues: 0, changes: 0, renewedPermits: 0 });
    expect(runtime.timers).toBe(0);
  });

  it('count who waits, for permits of either kind and for a latch', async () => {
    const one = synchronizers.named('one', 'semaphore', 'getSemaphore');
    void errorOf(synchronizers.takePermits(one, 1, terms()));
    void errorOf(synchronizers.takePermits(one, 1, terms()));
    void errorOf(synchronizers.takeLeasedPermits(one, 1, leased()));
    await runtime.until(synchronizers.change(done, trySetCount, 1));
    void errorOf(synchronizers.awaitLatch(done, terms()));
    await runtime.settle();
    expect([synchronizers.waiting(one.key), synchronizers.waiting(done.key)]).toEqual([3, 1]);
    expect(synchronizers.waiting(mail.key)).toBe(0);
    await synchronizers.close();
  });

  it('count each request on, in a session for each kind', async () => {
    const ids: RequestId[] = [];
    const note = async (execute: () => Promise<unknown>, args: unknown) => {
      ids.push(...(args as unknown[]).filter((arg): arg is RequestId => Object.hasOwn(arg ?? {}, 'session')));
      return execute();
    };
    backend.synchronizerRequests.disturb(note, 'takePermits', 'takeLeasedPermits', 'addPermits');
    await runtime.until(take());
    await runtime.until(synchronizers.takeLeasedPermits(cards, 1, leased(5_000)));
    await runtime.until(synchronizers.change(mail, addCountedPermits, 1));
    await runtime.until(take());
    expect(ids.map(({ session, sequence }) => [session, sequence])).toEqual([
      ['client:permits', 1],
      ['client:leased-permits', 2],
      ['client:change', 3],
      ['client:permits', 4],
    ]);
  });

  it('are compared once with the number of permits that their callers expect', async () => {
    for (let n = 0; n < 2; n++) await runtime.until(synchronizers.takePermits({ ...mail, initial: 5 + n }, 1, terms()));
    await runtime.until(synchronizers.change(cards, setPermits, 4));
    await runtime.until(synchronizers.takeLeasedPermits(cards, 1, leased(5_000)));
    await runtime.settle();
    expect(backend.synchronizerRequests.count('inspect')).toBe(2);
    expect(logger.warnings).toEqual([expect.stringContaining("the semaphore 'cards' was created with 4 permits")]);
  });

  it('are reported if they do not exist', async () => {
    for (const semaphore of [
      { ...mail, initial: undefined },
      { ...cards, initial: undefined },
    ]) {
      const error = await errorOf(
        semaphore.name === 'mail'
          ? runtime.until(synchronizers.takePermits(semaphore, 1, terms(0)))
          : runtime.until(synchronizers.takeLeasedPermits(semaphore, 1, { ...leased(), waitTime: ms(0) })),
      );
      expect(error).toBeInstanceOf(LockBusyError);
    }
    expect(logger.warnings).toEqual(
      ['mail', 'cards'].map((name) => expect.stringContaining(`There is no semaphore '${name}' in memory`)),
    );
  });

  it('ask nothing for a caller whose signal has aborted', async () => {
    const signal = AbortSignal.abort('too late');
    const error = await errorOf(synchronizers.takePermits(mail, 1, terms(FOREVER, signal)));
    expect(error).toBeInstanceOf(LockAbortedError);
    expect(error).toMatchObject({ cause: 'too late' });
    expect(commands()).toEqual([]);
  });

  it('refuse callers who come when the service is closed', async () => {
    services.admission.isClosed = true;
    for (const call of [take(), synchronizers.awaitLatch(done, terms())])
      expect(await errorOf(call)).toBeInstanceOf(LockAbortedError);
    expect(commands()).toEqual([]);
  });

  it('refuse a caller who comes during an outage and would not wait for its end', async () => {
    const refusal = new LockUnavailableError('the backend is away', 'mail');
    const asked: unknown[] = [];
    const arrived = (caller: { readonly what: string }, keys: readonly string[]) => {
      asked.push([caller.what, keys]);
      return asked.length === 1 ? refusal : undefined;
    };
    Object.assign(services.outages, { active: true, arrived });
    expect(await errorOf(take())).toBe(refusal);
    expect([asked, commands()]).toEqual([[["the semaphore 'mail'", ['lock:mail']]], []]);
    await runtime.until(take());
  });

  it('tell the limit of outages that nobody waits any more', async () => {
    let left = 0;
    Object.assign(services.outages, { left: () => void left++ });
    await runtime.until(take());
    expect(left).toBe(1);
  });

  it('give back what was granted to a caller who had left', async () => {
    const answer = latch();
    backend.synchronizerRequests.disturb(
      async (execute) => {
        const reply = await execute();
        await answer.promise;
        return reply;
      },
      'takePermits',
      'takeLeasedPermits',
    );
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [
      errorOf(synchronizers.takePermits(mail, 2, terms(FOREVER, signal))),
      errorOf(synchronizers.takeLeasedPermits(cards, 2, { ...leased(5_000), signal })),
    ];
    await runtime.settle();
    controller.abort();
    await Promise.all(calls);
    answer.open();
    await runtime.settle();
    expect(commands().slice(2)).toEqual(['addPermits', 'giveLeasedPermits']);
    expect(await Promise.all([available(mail), available(cards)])).toEqual([2, 2]);
  });

  it('have an event if they cannot give something back', async () => {
    const answer = latch();
    backend.synchronizerRequests.disturb(async (execute) => {
      const reply = await execute();
      await answer.promise;
      return reply;
    }, 'takePermits');
    backend.synchronizerRequests.disturb(async () => {
      throw new BackendError('no permission', 'denied', 'refused');
    }, 'addPermits');
    const controller = new AbortController();
    const call = errorOf(synchronizers.takePermits(mail, 2, terms(FOREVER, controller.signal)));
    await runtime.settle();
    controller.abort();
    await call;
    answer.open();
    await runtime.settle();
    expect(errors).toEqual([expect.any(LockUnavailableError)]);
  });

  it('replace the errors of the backend', async () => {
    const failWith = (kind: 'denied' | 'key') =>
      backend.synchronizerRequests.disturb(
        async () => {
          throw new BackendError('it failed', kind, 'refused');
        },
        'addPermits',
        'availablePermits',
      );
    failWith('denied');
    for (const call of [() => synchronizers.change(mail, addCountedPermits, 1), () => available()]) {
      const error = await errorOf(call());
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error).toMatchObject({
        message: "The backend gave no usable answer about the semaphore 'mail': it failed",
        lockName: 'mail',
      });
    }
    failWith('key');
    const error = await errorOf(available());
    expect(error).toBeInstanceOf(LockKeyError);
    expect(error.message).toBe("The semaphore 'mail' cannot be used: it failed");
  });

  describe('while a body runs that needs permits', () => {
    /** How often the work has changed, and whether it was idle then. */
    let changes: boolean[];
    beforeEach(() => {
      changes = [];
      services.work.watch(() => changes.push(services.work.isIdle));
    });

    it('give the permits back when it ends', async () => {
      await runtime.until(take(2));
      const result = await synchronizers.runWithPermits(mail, 2, async () => {
        expect([services.work.isIdle, await available()]).toEqual([false, 0]);
        return 'done';
      });
      expect([result, await available(), services.work.isIdle]).toEqual(['done', 2, true]);
      expect(changes).toContain(true);
    });

    it('give them back when it fails', async () => {
      await runtime.until(take(2));
      const failure = new Error('body');
      const run = synchronizers.runWithPermits(mail, 2, () => {
        throw failure;
      });
      expect(await errorOf(run)).toBe(failure);
      expect([await available(), services.work.isIdle]).toEqual([2, true]);
    });

    it('return its result although the permits cannot be given back, and have an event', async () => {
      await runtime.until(take(2));
      backend.synchronizerRequests.disturb(async () => {
        throw new BackendError('no permission', 'denied', 'refused');
      }, 'addPermits');
      expect(await synchronizers.runWithPermits(mail, 2, () => 'done')).toBe('done');
      expect(errors).toEqual([expect.any(LockUnavailableError)]);
      expect(services.work.isIdle).toBe(true);
    });

    it('return only when the permits have been given back', async () => {
      await runtime.until(take(2));
      const answer = latch();
      backend.synchronizerRequests.disturb(async (execute) => {
        await answer.promise;
        return execute();
      }, 'addPermits');
      let ended = false;
      const run = synchronizers
        .runWithPermits(mail, 2, () => {})
        .then(() => {
          ended = true;
        });
      await runtime.settle();
      expect([ended, changes]).toEqual([false, [true]]);
      answer.open();
      await run;
    });

    const takeCard = async () => (await runtime.until(synchronizers.takeLeasedPermits(cards, 1, leased())))[0];

    it('renew a permit with an id until it is given back', async () => {
      const id = await takeCard();
      expect(services.work.countPermits()).toBe(1);
      const end = latch();
      const result = synchronizers.runWithLeasedPermit(
        cards,
        id,
        async (permit) => {
          await end.promise;
          return [permit.id, permit.held];
        },
        'throw',
      );
      await runtime.advance(2 * WATCHDOG);
      expect(backend.synchronizerRequests.count('renewPermits')).toBeGreaterThan(2);
      end.open();
      expect(await result).toEqual([id, true]);
      expect(synchronizers.activity().renewedPermits).toBe(0);
      expect(await available(cards)).toBe(2);
    });

    /** Runs a body during which the permit is lost, noticed or not. */
    const loseCard = async (onLost: 'throw' | 'warn', isNoticed: boolean, body: () => unknown = () => 'done') => {
      const id = await takeCard();
      let seen: PermitLease | undefined;
      const run = synchronizers.runWithLeasedPermit(
        cards,
        id,
        async (permit) => {
          seen = permit;
          await backend.synchronizers?.giveLeasedPermits(cards.key, [id], { session: 'other', sequence: 1 });
          if (isNoticed) await new Promise<void>((resolve) => runtime.timer(WATCHDOG, resolve));
          expect([permit.held, permit.signal.aborted]).toEqual([!isNoticed, isNoticed]);
          return body();
        },
        onLost,
      );
      const result = await runtime.until(run.catch((error) => error));
      return { result, seen };
    };

    it.each([true, false])(
      'throw if the permit was lost, also if that was not noticed before: %s',
      async (isNoticed) => {
        const { result, seen } = await loseCard('throw', isNoticed);
        expect(result).toBeInstanceOf(LockLostError);
        expect(() => seen?.assertHeld()).toThrow(result as Error);
        // A loss that is noticed at the release is only thrown.
        const { message } = result as Error;
        expect(logger.warnings).toEqual(isNoticed ? [expect.stringContaining(`${message}. It was held by `)] : []);
      },
    );

    it.each([true, false])('warn instead if the caller wants that: %s', async (isNoticed) => {
      const { result } = await loseCard('warn', isNoticed);
      expect(result).toBe('done');
      expect(logger.warnings).toEqual([expect.stringMatching(/^A permit of the semaphore 'cards' was lost: /)]);
    });

    it('throw the error of the body although the permit was lost, too', async () => {
      const failure = new Error('body');
      const { result } = await loseCard('throw', true, () => {
        throw failure;
      });
      expect(result).toBe(failure);
    });
  });

  it('report that work has ended when the last renewed permit is released', async () => {
    const changes: number[] = [];
    services.work.watch(() => changes.push(services.work.countPermits()));
    const [one, other] = await runtime.until(synchronizers.takeLeasedPermits(cards, 2, leased()));
    changes.length = 0;
    synchronizers.renewedPermits.remove(cards, [one]);
    expect(changes).toEqual([]);
    synchronizers.renewedPermits.remove(cards, [other]);
    expect(changes).toEqual([0]);
  });

  describe('when the service is closed', () => {
    it('refuse all who wait, and leave held permits to their leases with a warning', async () => {
      const ids = await runtime.until(synchronizers.takeLeasedPermits(cards, 2, leased()));
      await runtime.until(take(2));
      const calls = [take(), synchronizers.takeLeasedPermits(cards, 1, leased())].map(errorOf);
      await runtime.settle();
      await runtime.until(synchronizers.close());
      for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(LockAbortedError);
      expect(logger.warnings).toEqual([
        "Shutdown: 2 permits of the semaphore 'cards' are still held; they are no longer renewed and expire with their leases",
      ]);
      expect(synchronizers.activity()).toEqual({ permitQueues: 0, changes: 0, renewedPermits: 0 });
      expect(ids).toHaveLength(2);
      const before = commands().length;
      await runtime.advance(WATCHDOG / 2);
      expect([commands().length, await available(cards)]).toEqual([before, 0]);
    });

    it('wait for answers of requests and changes', async () => {
      const answers = [latch(), latch()];
      for (const [n, command] of (['takePermits', 'addPermits'] as const).entries())
        backend.synchronizerRequests.disturb(async (execute) => {
          const reply = await execute();
          await answers[n].promise;
          return reply;
        }, command);
      const call = errorOf(take());
      const change = synchronizers.change(cards, addCountedPermits, 1);
      await runtime.settle();
      let closed = false;
      void synchronizers.close().then(() => {
        closed = true;
      });
      await call;
      for (const { open } of answers) {
        await runtime.settle();
        expect(closed).toBe(false);
        open();
      }
      await change;
      await runtime.settle();
      expect(closed).toBe(true);
    });

    it('do not repeat changes that fail, and can give up those that have no answer', async () => {
      backend.synchronizerRequests.disturb(refused, 'addPermits');
      const change = errorOf(synchronizers.change(mail, addCountedPermits, 1));
      await runtime.settle();
      const closed = synchronizers.close();
      await runtime.settle();
      synchronizers.abandon();
      expect(await change).toMatchObject({
        name: 'LockUnavailableError',
        message: expect.stringContaining('the lock service was closed before the backend answered'),
      });
      await closed;
      expect(await errorOf(synchronizers.change(mail, addCountedPermits, 1))).toBeInstanceOf(LockUnavailableError);
      expect(backend.synchronizerRequests.count('addPermits')).toBe(2);
      expect(runtime.timers).toBe(0);
    });

    it('say whether this process certainly holds what callers wait for', async () => {
      const { work } = services;
      const end = latch();
      await runtime.until(take(2));
      const waiting = take();
      await runtime.settle();
      const awaited = () => [...work.permitQueues.values()].map(({ callers: line }) => line.awaited);
      expect(awaited()).toEqual(['another process']);
      const body = synchronizers.runWithPermits(mail, 1, () => end.promise);
      expect(awaited()).toEqual(['this process']);
      end.open();
      await runtime.until(Promise.all([body, waiting]));
      await runtime.settle();
      expect(work.permitQueues.size).toBe(0);
    });
  });
});
