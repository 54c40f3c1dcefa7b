import { BackendError, type BlockingBackend, type Busy } from '../../../lib/backends/lock-backend.js';
import { LockBusyError } from '../../../lib/engine/errors.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

describe('a caller that tries once', () => {
  const world = openVirtualWorld();

  it('reads beside a reader of its process whose request is not answered yet', async () => {
    const { locks, backend, runtime } = await world.process();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const reading = locks.acquire('page', { type: 'read' });
    await runtime.settle();
    const trying = locks.tryAcquire('page', { type: 'read' });
    await runtime.settle();
    answer.open();
    const [first, second] = await runtime.until(Promise.all([reading, trying]));
    expect(second?.held).toBe(true);
    await Promise.all([first.release(), second?.release()]);
  });

  it.each([
    ['one lock', ['page']],
    ['several locks', ['cover', 'page']],
  ])(
    'for %s is refused at once when another caller of its process already waits for a release',
    async (_what, names) => {
      const { locks, backend, runtime } = await world.process();
      const held = await locks.acquire('page', { type: 'read' });
      const writing = locks.acquire('page', { type: 'write' });
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'release');
      const released = held.release();
      await runtime.settle();
      let outcome: unknown = 'none yet';
      const trying =
        names.length === 1 ? locks.tryAcquire(names[0], { type: 'write' }) : locks.tryAcquire(names, { type: 'write' });
      void trying.then((lease) => {
        outcome = lease;
      });
      await runtime.settle();
      expect(outcome).toBeNull();
      answer.open();
      await released;
      await (await runtime.until(writing)).release();
    },
  );

  it('knows no end of a lease that has none', async () => {
    const { locks, backend, runtime } = await world.process();
    backend.disturb(async (): Promise<Busy> => ({ acquired: false, remaining: -1, holder: 'other:1' }), 'acquire');
    const error = (await errorOf(locks.acquire('order', { waitTime: 0 }))) as LockBusyError;
    expect(error).toBeInstanceOf(LockBusyError);
    expect(error.remainingTime).toBe(-1);
    expect(error.holder).toBe('other:1');
    await runtime.settle();
  });

  describe('behind a release of its process that has failed, and is repeated in the background', () => {
    /** `failures` is how many requests for a release fail. Another type has another queue. */
    const scene = async (failures: number) => {
      const process = await world.process();
      const { locks, backend } = process;
      let releases = 0;
      backend.disturb((execute, request) => (++releases > failures ? execute() : refused(execute, request)), 'release');
      await (await locks.acquire('order')).release();
      backend.commands.length = 0;
      return process;
    };

    it.each(['reentrant', 'fenced', 'read', 'write', 'fair'] as const)(
      'gets the lock when the next release succeeds: type %s',
      async (type) => {
        const { locks, backend, runtime } = await scene(2);
        const lease = await runtime.until(locks.tryAcquire('order', { type }));
        expect(lease).not.toBeNull();
        expect(backend.count('acquire')).toBe(2);
        await lease?.release();
      },
    );

    it.each(['reentrant', 'fenced', 'read', 'write', 'fair'] as const)(
      'asks only once more, although the release fails again and again: type %s',
      async (type) => {
        const { locks, backend, runtime } = await scene(20);
        expect(await runtime.until(locks.tryAcquire('order', { type }))).toBeNull();
        expect(backend.count('acquire')).toBe(2);
        expect(backend.count('release')).toBeLessThan(5);
        await runtime.advance(30_000);
        expect(await locks.isLocked('order')).toBe(false);
      },
    );
  });

  describe('when callers wait in the backend', () => {
    const BUSY: Busy = { acquired: false, remaining: 1_000, holder: 'other:1' };

    /**
     * A process in which a caller waits for the lock 'order'. Its backend answers such requests only when the test says
     * so; other locks are free.
     */
    const scene = async () => {
      const process = await world.process();
      const { locks, backend, runtime } = process;
      let notify!: (reason: Busy | BackendError) => void;
      const stopped = latch();
      const blocking: BlockingBackend = {
        refusal: () => undefined,
        acquire: async (request, onWait) => {
          if (!request.key.endsWith('order')) return backend.acquire(request);
          notify = onWait;
          await stopped.promise;
          return BUSY;
        },
        stop: stopped.open,
      };
      Object.assign(backend, { blocking });
      const abort = new AbortController();
      const waiting = outcomeOf(locks.acquire('order', { signal: abort.signal }));
      await runtime.settle();
      const leave = async () => {
        abort.abort();
        await runtime.settle();
        expect(waiting.result).toBe('LockAbortedError');
      };
      return { ...process, notify, waiting, leave };
    };

    const outcomeOf = (acquisition: Promise<unknown>) => {
      const outcome = { result: 'none yet' };
      const settle = (result: string) => {
        outcome.result = result;
      };
      acquisition.then(
        () => settle('served'),
        ({ name }: Error) => settle(name),
      );
      return outcome;
    };

    it('is refused at once if another caller of its process waits for the lock there', async () => {
      const { locks, runtime, notify, leave } = await scene();
      notify(BUSY);
      const trying = outcomeOf(locks.acquire('order', { waitTime: 0 }));
      await runtime.settle();
      expect(trying.result).toBe('LockBusyError');
      await leave();
    });

    it('is refused, like a caller that holds another lock, when there is no connection, while others wait', async () => {
      const { locks, runtime, notify, waiting, leave } = await scene();
      const nested = outcomeOf(locks.withLock('customer', () => locks.acquire('order')));
      await runtime.settle();
      const trying = outcomeOf(locks.acquire('order', { waitTime: 0 }));
      await runtime.settle();
      notify(new BackendError('there is no connection', 'unavailable', 'refused'));
      await runtime.settle();
      expect(nested.result).toBe('LockUnavailableError');
      expect(trying.result).toBe('LockUnavailableError');
      expect(waiting.result).toBe('none yet');
      await leave();
    });
  });
});
