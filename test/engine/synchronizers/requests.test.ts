import { BackendError } from '../../../lib/backends/lock-backend.js';
import type { RequestId } from '../../../lib/backends/synchronizer-backend.js';
import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, answerLost, refused } from '../../support/watched/watched-backend.js';

const unavailable =
  (outcome: 'refused' | 'unknown', kind: 'unavailable' | 'denied' | 'key' = 'unavailable') =>
  async () => {
    throw new BackendError('no answer in time', kind, outcome);
  };

describe('the callers of a semaphore in one process', () => {
  const world = openVirtualWorld();

  const open = async (permits = 0) => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    const semaphore = locks.getSemaphore('mail');
    await semaphore.trySetPermits(permits);
    const requests = backend.synchronizerRequests;
    const taken = () => requests.count('takePermits');
    return { ...process, semaphore, requests, taken, settle: () => runtime.settle() };
  };

  it('ask for one request at a time, and then for all who have come meanwhile', async () => {
    const { semaphore, requests, taken, settle } = await open(10);
    const answer = latch();
    requests.disturb(answerAfter(answer.promise), 'takePermits');
    const callers = Array.from({ length: 5 }, () => semaphore.acquire());
    await settle();
    expect(taken()).toBe(1);
    answer.open();
    await Promise.all(callers);
    expect(taken()).toBe(2);
    expect(await semaphore.availablePermits()).toBe(5);
  });

  it('rest until a message, and are served in the order of their arrival', async () => {
    const { semaphore, runtime, taken, settle } = await open();
    const served: number[] = [];
    const callers = [1, 2, 3].map((n) => semaphore.acquire().then(() => served.push(n)));
    await settle();
    const before = taken();
    await runtime.advance(60_000);
    expect(taken()).toBe(before);
    await semaphore.release(2);
    await settle();
    expect(served).toEqual([1, 2]);
    await semaphore.release();
    await Promise.all(callers);
    expect(served).toEqual([1, 2, 3]);
  });

  it('ask for the next one when the first one leaves, because it may want fewer', async () => {
    const { semaphore, settle } = await open(1);
    const abort = new AbortController();
    const first = errorOf(semaphore.acquire(2, { signal: abort.signal }));
    const second = semaphore.acquire(1);
    await settle();
    abort.abort();
    expect((await first).name).toBe('LockAbortedError');
    await second;
  });

  it('ask when the earliest lease of a permit has ended', async () => {
    const { locks, runtime } = await open();
    const leased = locks.getPermitExpirableSemaphore('cards');
    await leased.trySetPermits(1);
    await leased.acquire('5s');
    let isServed = false;
    const next = leased.acquire('1s').then(() => {
      isServed = true;
    });
    await runtime.advance(4_990);
    expect(isServed).toBe(false);
    await runtime.advance(20);
    await next;
  });

  it('are refused if they try once and too few permits are there, and take no turn from the others', async () => {
    const { semaphore, settle } = await open(1);
    const waits = semaphore.acquire(2);
    await settle();
    expect([await semaphore.tryAcquire(2), await semaphore.tryAcquire(1)]).toEqual([false, true]);
    await semaphore.release(1);
    await semaphore.release(1);
    await waits;
  });

  it('take turns with those that try once, so that these do not starve them', async () => {
    const { semaphore, requests, taken, settle } = await open(2);
    const answers = [latch(), latch()];
    requests.disturb(async (execute) => {
      await answers[taken() - 1]?.promise;
      return execute();
    }, 'takePermits');
    const first = semaphore.tryAcquire();
    await settle();
    const waits = semaphore.acquire();
    const tries = [semaphore.tryAcquire(), semaphore.tryAcquire()];
    await settle();
    for (const { open } of answers) open();
    expect(await first).toBe(true);
    await waits;
    expect(await Promise.all(tries)).toEqual([false, false]);
  });

  it('are refused if they try once, and not those who wait, when the backend does not answer', async () => {
    const { semaphore, requests, runtime, settle } = await open(2);
    requests.disturb(refused, 'takePermits');
    const waits = semaphore.acquire();
    const tries = [errorOf(semaphore.tryAcquire()), errorOf(semaphore.tryAcquire())];
    await settle();
    for (const error of await Promise.all(tries)) expect(error.name).toBe('LockUnavailableError');
    requests.heal();
    await runtime.until(waits);
  });

  it('ask with a new request if the other was not executed, and otherwise repeat it until its result is known', async () => {
    const { semaphore, requests, runtime } = await open(5);
    const ids: RequestId[] = [];
    const outcomes = ['refused', 'unknown', 'unknown'] as const;
    requests.disturb(async (execute, request) => {
      ids.push((request as unknown[]).find((each) => (each as RequestId)?.session !== undefined) as RequestId);
      const outcome = outcomes[ids.length - 1];
      return outcome === undefined ? execute() : unavailable(outcome)();
    }, 'takePermits');
    await runtime.until(semaphore.acquire());
    expect(new Set(ids.slice(1).map(({ sequence }) => sequence)).size).toBe(1);
    expect(ids[1].sequence).toBeGreaterThan(ids[0].sequence);
    expect(ids.map(({ repeated }) => repeated ?? false)).toEqual([false, false, true, true]);
  });

  it('give back what was granted to one that has left, and serve the others with it', async () => {
    const { semaphore, requests, settle } = await open(1);
    const answer = latch();
    requests.disturb(answerAfter(answer.promise), 'takePermits');
    const abort = new AbortController();
    const left = errorOf(semaphore.acquire(1, { signal: abort.signal }));
    const other = semaphore.acquire();
    await settle();
    abort.abort();
    await left;
    answer.open();
    await other;
    expect(await semaphore.availablePermits()).toBe(0);
  });

  it('are told that the key holds something else', async () => {
    const { semaphore, requests } = await open(1);
    requests.disturb(unavailable('refused', 'key'), 'takePermits');
    expect((await errorOf(semaphore.acquire())).message).toContain("The semaphore 'mail' cannot be used");
  });
});

describe('changes of a semaphore', () => {
  const world = openVirtualWorld();

  it('that arrive during a request are sent together, of each kind, in the order of their calls', async () => {
    const { locks, backend } = await world.process();
    const semaphore = locks.getSemaphore('mail');
    const { synchronizerRequests } = backend;
    await Promise.all([1, 2, 3, 4].map(() => semaphore.addPermits(1)));
    expect(synchronizerRequests.commands.filter((name) => name === 'addPermits')).toHaveLength(2);
    const changes = [
      semaphore.addPermits(1),
      semaphore.trySetPermits(7),
      semaphore.drainPermits(),
      semaphore.release(),
    ];
    expect((await Promise.all(changes)).slice(1, 3)).toEqual([false, 5]);
    expect(await semaphore.availablePermits()).toBe(1);
  });

  it('give what is drained to the first caller of those that are sent together', async () => {
    const { locks } = await world.process();
    const semaphore = locks.getSemaphore('mail');
    const added = semaphore.addPermits(3); // both wait for its answer
    expect(await Promise.all([semaphore.drainPermits(), semaphore.drainPermits()])).toEqual([3, 0]);
    await added;
  });

  it('are repeated with growing pauses, and given up after a minute', async () => {
    const { locks, backend, runtime } = await world.process();
    const times: number[] = [];
    backend.synchronizerRequests.disturb(async (execute, request) => {
      times.push(runtime.monotonic());
      return answerLost(execute, request);
    }, 'addPermits');
    expect((await runtime.until(errorOf(locks.getSemaphore('mail').addPermits(1)), 300_000)).name).toBe(
      'LockUnavailableError',
    );
    expect(runtime.monotonic()).toBeGreaterThan(58_000);
    expect(runtime.monotonic()).toBeLessThanOrEqual(60_000);
    const pauses = times.slice(1).map((time, n) => time - times[n]);
    expect(pauses[0]).toBeLessThanOrEqual(50);
    expect(Math.min(...pauses.slice(6))).toBeGreaterThanOrEqual(500);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1_000);
    expect(await locks.getSemaphore('mail').availablePermits()).toBe(1);
    expect(runtime.timers).toBe(0);
  });

  it('that the backend refuses for good are not repeated, and do not stop later ones', async () => {
    const { locks, backend } = await world.process();
    const semaphore = locks.getSemaphore('mail');
    let requests = 0;
    backend.synchronizerRequests.disturb(
      async (execute) => (++requests === 1 ? unavailable('refused', 'denied')() : execute()),
      'addPermits',
    );
    const results = await Promise.allSettled([semaphore.addPermits(1), semaphore.addPermits(2)]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect([requests, await semaphore.availablePermits()]).toEqual([2, 2]);
  });
});

describe('changes of a semaphore whose service closes', () => {
  const world = openVirtualWorld();

  it('fail at once when they would be repeated, and leave no timer', async () => {
    const { locks, backend, runtime } = await world.process({ shutdownTimeout: ms(100), commandTimeout: 100 });
    backend.synchronizerRequests.disturb(refused, 'addPermits');
    const failed = errorOf(locks.getSemaphore('mail').addPermits(1));
    await runtime.advance(5_000);
    const asked = backend.synchronizerRequests.count('addPermits');
    await runtime.until(locks.close());
    expect((await failed).name).toBe('LockUnavailableError');
    expect(runtime.monotonic()).toBeLessThanOrEqual(5_200);
    expect([backend.synchronizerRequests.count('addPermits') - asked, runtime.timers]).toEqual([0, 0]);
  });
});

describe('permits that are renewed', () => {
  const world = openVirtualWorld();
  const LEASE = 30_000;

  const open = async (permits: number) => {
    const process = await world.process({ watchdogTimeout: ms(LEASE), shutdownTimeout: ms(100) });
    const { locks, backend, runtime } = process;
    const cards = locks.getPermitExpirableSemaphore('cards');
    await cards.trySetPermits(permits);
    const ids: string[] = [];
    for (let first = 0; first < permits; first += 1_000)
      ids.push(...(await runtime.until(cards.acquireMany(Math.min(1_000, permits - first)))));
    const renewals = () => backend.synchronizerRequests.count('renewPermits');
    return { ...process, cards, ids, renewals };
  };

  it('are renewed together, in requests of 512 at most, when a third of the lease is over', async () => {
    const { runtime, renewals, cards } = await open(1_300);
    await runtime.advance(LEASE / 3 - 1_000);
    expect(renewals()).toBe(0);
    await runtime.advance(2_000);
    expect(renewals()).toBe(3);
    await runtime.advance(LEASE);
    expect(await cards.availablePermits()).toBe(0);
  });

  it('are not renewed after their release', async () => {
    const { cards, ids, runtime, renewals } = await open(2);
    await cards.release(ids);
    await runtime.advance(LEASE);
    expect(renewals()).toBe(0);
    expect(runtime.timers).toBe(0);
  });

  it('are renewed as before when others were released, of their semaphore or of another one', async () => {
    const { locks, cards, ids, runtime } = await open(2);
    const lost: unknown[] = [];
    locks.on('lost', (event) => lost.push(event));
    await cards.release(ids[0]);
    const tickets = locks.getPermitExpirableSemaphore('tickets');
    await tickets.trySetPermits(1);
    await tickets.release(await tickets.acquire());
    await runtime.advance(3 * LEASE);
    expect([lost, await cards.availablePermits()]).toEqual([[], 1]);
  });

  it('are renewed after a request that failed, with an event and a warning', async () => {
    const { locks, backend, cards, logger, runtime, renewals } = await open(2);
    const events: unknown[] = [];
    locks.on('renewalFailed', ({ name }) => events.push(name));
    backend.synchronizerRequests.disturb(refused, 'renewPermits');
    await runtime.advance(LEASE / 3 + 1_000);
    expect(events.length).toBeGreaterThan(0);
    expect(logger.warnings.length).toBeGreaterThan(0);
    backend.synchronizerRequests.heal();
    const before = renewals();
    await runtime.advance(LEASE);
    expect(renewals()).toBeGreaterThan(before);
    expect(await cards.availablePermits()).toBe(0);
  });

  it('are lost with a reason when their lease has ended without an answer', async () => {
    const { locks, backend, runtime } = await open(2);
    const lost: string[] = [];
    locks.on('lost', ({ error }) => lost.push(error.message));
    backend.synchronizerRequests.disturb(refused, 'renewPermits');
    await runtime.advance(LEASE - 1_000);
    expect(lost).toEqual([]);
    await runtime.advance(1_000);
    expect(lost).toEqual(Array(2).fill(expect.stringMatching(/^A permit of the semaphore 'cards' was lost: /)));
  });

  it('are left to their leases when the service closes, with a warning', async () => {
    const { locks, logger, runtime, renewals } = await open(2);
    await runtime.until(locks.close());
    expect(logger.warnings).toEqual([
      "Shutdown: 2 permits of the semaphore 'cards' are still held; they are no longer renewed and expire with their leases",
    ]);
    const before = renewals();
    await runtime.advance(LEASE / 2);
    expect(renewals()).toBe(before);
  });
});
