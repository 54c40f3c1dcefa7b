import {
  LockBusyError,
  LockConfigurationError,
  LockDeadlockError,
  LockLostError,
  LockUnavailableError,
} from '../../../lib/engine/errors.js';
import { leftovers, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, answerLost, refused } from '../../support/watched/watched-backend.js';

/** A body that counts its runs, and ends when the test lets it end. */
function gated(result = 'done') {
  const { promise, open } = latch();
  const flight = {
    runs: 0,
    end: open,
    body: async () => {
      flight.runs++;
      await promise;
      return result;
    },
  };
  return flight;
}

describe('the callers of a single flight', () => {
  const world = openVirtualWorld();

  it('who come while others of their process sleep get the result of the run that is under way', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const flight = gated();
    const calls = [ann, bob, bob, bob].map(async ({ locks }, i) => {
      await world.runtime.advance(i);
      return locks.singleFlight('price', flight.body);
    });
    await world.runtime.advance(10);
    expect(bob.backend.isAsleep).toBe(true);
    flight.end();
    expect(await world.runtime.until(Promise.all(calls))).toEqual(Array(4).fill('done'));
    expect(flight.runs).toBe(1);
    for (const process of [ann, bob]) expect(leftovers(process)).toEqual(NOTHING);
  });

  it('run by themselves as soon as the run that they had joined has lost its lock', async () => {
    const { locks, runtime } = await world.process();
    const flight = gated();
    const lost = locks.singleFlight('price', { leaseTime: '2s' }, flight.body);
    await runtime.settle();
    const joined = locks.singleFlight('price', async () => 'again');
    await runtime.advance(1_000);
    expect(locks.engine.waiting('price')).toBe(1);
    expect(await runtime.until(joined, 2_000)).toBe('again');
    flight.end();
    await expect(lost).rejects.toThrow(LockLostError);
    expect(await locks.singleFlight('price', async () => 'later')).toBe('later');
  });

  it('are not disturbed by the end of a run that lost its lock to a later one', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    const [first, second] = [gated('first'), gated('second')];
    const lost = locks.singleFlight('price', { leaseTime: '2s' }, first.body);
    await runtime.advance(3_000);
    const later = locks.singleFlight('price', second.body);
    await runtime.settle();
    const joined = locks.singleFlight('price', async () => 'joined too late');
    await runtime.settle();
    first.end();
    await expect(lost).rejects.toThrow(LockLostError);
    second.end();
    expect(await Promise.all([later, joined])).toEqual(['second', 'second']);
    await runtime.settle();
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('get no result of another process that is larger than their own maxSize', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const flight = gated('x'.repeat(100));
    const run = ann.locks.singleFlight('price', flight.body);
    await world.runtime.settle();
    const calls = [1_000, 50].map((maxSize) => bob.locks.singleFlight('price', { maxSize }, async () => 'own'));
    await world.runtime.advance(10);
    flight.end();
    expect(await world.runtime.until(Promise.all(calls))).toEqual(['x'.repeat(100), 'own']);
    await run;
  });

  it('are refused at once with a waitTime of 0, also while others of their process wait', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const flight = gated();
    const run = ann.locks.singleFlight('price', flight.body);
    await world.runtime.settle();
    const waiting = bob.locks.singleFlight('price', flight.body);
    await world.runtime.advance(10);
    const began = world.runtime.monotonic();
    const once = () => errorOf(bob.locks.singleFlight('price', { waitTime: 0 }, flight.body));
    const errors = await world.runtime.until(Promise.all([once(), once()]), 1_000);
    for (const error of errors) expect(error).toBeInstanceOf(LockBusyError);
    expect(world.runtime.monotonic()).toBe(began);
    flight.end();
    expect(await world.runtime.until(Promise.all([run, waiting]))).toEqual(['done', 'done']);
  });

  it('ask a backend that refuses them less and less often', async () => {
    const { locks, backend, runtime } = await world.process();
    backend.disturb(refused, 'acquire');
    const calls = [1, 2].map(() => errorOf(locks.singleFlight('price', { waitTime: '5s' }, async () => 'never')));
    await runtime.advance(1);
    expect(backend.count('acquire')).toBe(1);
    for (const error of await runtime.until(Promise.all(calls))) expect(error).toBeInstanceOf(LockUnavailableError);
    expect(backend.count('acquire')).toBeGreaterThan(1);
    expect(backend.count('acquire')).toBeLessThan(25);
  });

  it('are told when they and the run wait for each other', async () => {
    const { locks, runtime } = await world.process();
    const [inside, go] = [latch(), latch()];
    const outer = locks.withLock('order', async () => {
      inside.open();
      await go.promise;
      return locks.singleFlight('price', async () => 'own');
    });
    const flight = errorOf(
      locks.singleFlight('price', async () => {
        await inside.promise;
        go.open();
        return locks.withLock('order', async () => 'price');
      }),
    );
    const errors = await runtime.until(Promise.all([errorOf(outer), flight]));
    expect(errors).toEqual([expect.any(LockDeadlockError), expect.any(LockDeadlockError)]);
  });

  it('cannot choose how the lock is released', async () => {
    const { locks } = await world.process();
    const call = locks.singleFlight('price', { release: 'background' } as never, async () => 1);
    await expect(call).rejects.toThrow(LockConfigurationError);
  });

  it.each([
    ['whether the lock is free', 'acquire'],
    ['whether they may join a run', 'inspect'],
    ['to store the result of a run', 'release'],
  ] as const)('are told that the backend is silent when it was asked %s', async (_, command) => {
    const { locks, backend, runtime } = await world.process();
    const [flight, answer] = [gated(), latch()];
    const run = command === 'acquire' ? undefined : locks.singleFlight('price', flight.body);
    await runtime.advance(10);
    backend.disturb(answerAfter(answer.promise), command);
    if (command === 'release') flight.end();
    await runtime.advance(10);
    const call = errorOf(locks.singleFlight('price', { waitTime: '2s' }, async () => 'own'));
    expect(await runtime.until(call)).toBeInstanceOf(LockUnavailableError);
    backend.heal();
    answer.open();
    flight.end();
    await run;
  });

  it('ask under another owner after an answer was lost, because the former one is released', async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    const owners: string[] = [];
    backend.disturb(async (execute, request) => {
      owners.push((request as { owner: string }).owner);
      return owners.length === 1 ? answerLost(execute, request) : execute();
    }, 'acquire');
    expect(await runtime.until(locks.singleFlight('price', async () => 'own'))).toBe('own');
    expect(owners.length).toBeGreaterThan(1);
    expect(owners.slice(1)).not.toContain(owners[0]);
    await runtime.advance(5_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('get the result of a run that the backend refuses to store, with a warning', async () => {
    const { locks, backend, logger, runtime } = await world.process();
    const flight = gated();
    backend.disturb(async (execute) => ({ ...(await execute()), refusal: 'out of memory' }), 'release');
    const calls = [1, 2].map(() => locks.singleFlight('price', flight.body));
    await runtime.settle();
    flight.end();
    expect(await runtime.until(Promise.all(calls))).toEqual(['done', 'done']);
    expect(logger.warnings).toEqual([expect.stringContaining('out of memory')]);
  });
});
