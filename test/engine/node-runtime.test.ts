import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { LockScope, lockScopes, type ScopedLease } from '../../lib/engine/scope/lock-scope.js';

/** Runs `work` in a lock scope. */
const inScope = <T>(work: () => T): T => {
  const lease = { service: {}, live: true, released: false, isStranger: false };
  return lockScopes.run(new LockScope(lease as unknown as ScopedLease, undefined), work);
};

describe('a timer of Node.js', () => {
  it.each([2 ** 31, 2 ** 40, Number.POSITIVE_INFINITY])(
    'of %d ms, longer than Node.js allows, does not fire at once',
    async (delay) => {
      let fired = false;
      const timer = nodeRuntime.timer(delay, () => {
        fired = true;
      });
      await sleep(20);
      timer.cancel();
      expect(fired).toBe(false);
    },
  );

  it('fires soon when its delay is over already', async () => {
    await new Promise<void>((resolve) => void nodeRuntime.timer(-5, resolve, 'keep-alive'));
  });

  it('does not fire before its delay is over, although Node.js drops fractions of a millisecond', () => {
    const setTimeout = jest.spyOn(globalThis, 'setTimeout');
    try {
      for (const delay of [10.2, 10, -3, 2 ** 31]) nodeRuntime.timer(delay, () => {}).cancel();
      expect(setTimeout.mock.calls.map(([, delay]) => delay)).toEqual([11, 10, 0, 2 ** 31 - 1]);
    } finally {
      setTimeout.mockRestore();
    }
  });

  it('does not fire after it was cancelled', async () => {
    let fired = false;
    const timer = nodeRuntime.timer(1, () => {
      fired = true;
    });
    timer.cancel();
    await sleep(20);
    expect(fired).toBe(false);
  });

  it('keeps the process alive only if it is asked to', () => {
    const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    const before = timers();
    const plain = nodeRuntime.timer(60_000, () => {});
    expect(timers()).toBe(before);
    const kept = nodeRuntime.timer(60_000, () => {}, 'keep-alive');
    expect(timers()).toBe(before + 1);
    kept.cancel();
    plain.cancel();
    expect(timers()).toBe(before);
  });

  it('calls back outside of the scope in which it was started, as a turn of the event loop does', async () => {
    const scopes: unknown[] = [];
    await inScope(async () => {
      const note = (resolve: () => void) => () => {
        scopes.push(lockScopes.getStore());
        resolve();
      };
      await new Promise<void>((resolve) => void nodeRuntime.timer(1, note(resolve), 'keep-alive'));
      await new Promise<void>((resolve) => nodeRuntime.nextTurn(note(resolve)));
      nodeRuntime.detached(note(() => {}));
    });
    expect(scopes).toEqual([undefined, undefined, undefined]);
  });
});

describe('the clocks and the chance of Node.js', () => {
  it('are those of the process', () => {
    const monotonic = performance.now();
    const wall = Date.now();
    expect(nodeRuntime.monotonic()).toBeGreaterThanOrEqual(monotonic);
    expect(nodeRuntime.monotonic()).toBeLessThanOrEqual(performance.now());
    expect(nodeRuntime.wall()).toBeGreaterThanOrEqual(wall);
    expect(nodeRuntime.wall()).toBeLessThanOrEqual(Date.now());
    const numbers = new Set(Array.from({ length: 5 }, () => nodeRuntime.random()));
    expect(numbers.size).toBe(5);
    for (const number of numbers) expect(number >= 0 && number < 1).toBe(true);
  });

  it('create ids that differ', () => {
    const ids = [nodeRuntime.uuid(), nodeRuntime.uuid()];
    expect(ids[0]).not.toBe(ids[1]);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  });
});
