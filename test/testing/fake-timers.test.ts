/** @sandbox for timers that are not those of the process */
import { setTimeout as realDelay } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { LockBusyError, LockService, LockUnavailableError } from '../../lib/index.js';
import { LockTestingController, LockTestingModule } from '../../lib/testing.js';
import { until } from '../support/until.js';

async function start() {
  const imports = [LockTestingModule.forRoot({ shutdownTimeout: 0 })];
  const app = await Test.createTestingModule({ imports }).compile();
  await app.init();
  return { app, locks: app.get(LockService), testing: app.get(LockTestingController) };
}

type Started = Awaited<ReturnType<typeof start>>;

async function expireAndRenew({ locks, testing }: Started) {
  const [fixed, renewed] = [await locks.acquire('fixed', { leaseTime: '30s' }), await locks.acquire('renewed')];
  await jest.advanceTimersByTimeAsync(29_000);
  await testing.expectHeld('fixed');
  expect(fixed.signal.aborted).toBe(false);
  await jest.advanceTimersByTimeAsync(2_000);
  await testing.expectFree('fixed');
  expect(fixed.signal.aborted).toBe(true);
  await jest.advanceTimersByTimeAsync(100_000);
  await testing.expectHeld('renewed');
  expect(renewed.signal.aborted).toBe(false);
  await renewed.release();
}

async function waitInVain({ locks, testing }: Started) {
  await using _held = await testing.holdByAnother('order');
  const waiting = locks.acquire('order', { waitTime: '5s' }).catch((error) => error);
  await jest.advanceTimersByTimeAsync(6_000);
  expect(await waiting).toBeInstanceOf(LockBusyError);
}

async function waitForRelease({ locks, testing }: Started) {
  const held = await testing.holdByAnother('order');
  const waiting = locks.acquire('order');
  await held.release();
  await (await waiting).release();
}

async function giveUpInOutage({ locks, testing }: Started) {
  testing.failBackend();
  const waiting = locks.acquire('order', { outageTimeout: '5s' }).catch((error) => error);
  await jest.advanceTimersByTimeAsync(8_000);
  expect(await waiting).toBeInstanceOf(LockUnavailableError);
  testing.restoreBackend();
  await (await locks.acquire('order')).release();
}

describe('fake timers of Jest', () => {
  afterEach(() => jest.useRealTimers());

  const SCENES: [string, (started: Started) => Promise<void>][] = [
    ['let leases end and be renewed', expireAndRenew],
    ['let a wait end', waitInVain],
    ['let outageTimeout end a wait', giveUpInOutage],
    ['do not hold up a release', waitForRelease],
  ];
  const KINDS: [string, Parameters<typeof jest.useFakeTimers>[0]][] = [
    ['all of them', undefined],
    ['all but performance', { doNotFake: ['performance'] }],
    ['not setImmediate and nextTick', { doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] }],
  ];
  describe.each(KINDS)('%s', (_kind, config) => {
    it.each(SCENES)('installed before the application starts %s', async (_, scene) => {
      jest.useFakeTimers(config);
      const started = await start();
      await scene(started);
      await started.app.close();
    });

    it.each(SCENES)('installed after the application has started %s', async (_, scene) => {
      const started = await start();
      jest.useFakeTimers(config);
      await scene(started);
      await started.app.close();
    });

    it.each(SCENES)('removed before it closes %s', async (_, scene) => {
      const started = await start();
      jest.useFakeTimers(config);
      await scene(started);
      jest.useRealTimers();
      await started.app.close();
    });
  });

  it('work together with clock.advance', async () => {
    jest.useFakeTimers();
    const { app, locks, testing } = await start();
    const lease = await locks.acquire('order', { leaseTime: '30s' });
    await testing.clock.advance('20s');
    await testing.expectHeld('order');
    await jest.advanceTimersByTimeAsync(11_000);
    await testing.expectFree('order');
    expect(lease.signal.aborted).toBe(true);
    await app.close();
  });

  it('leave a lease as it was when they are installed while it is held', async () => {
    const { app, locks, testing } = await start();
    const lease = await locks.acquire('order', { leaseTime: '300ms' });
    jest.useFakeTimers();
    await testing.expectHeld('order');
    await jest.advanceTimersByTimeAsync(400);
    await testing.expectFree('order');
    expect(lease.signal.aborted).toBe(true);
    await app.close();
  });

  it('let no real time end a lease that was acquired before', async () => {
    const { app, locks } = await start();
    const lease = await locks.acquire('order', { leaseTime: '300ms' });
    jest.useFakeTimers();
    await realDelay(700);
    expect(lease.signal.aborted).toBe(false);
    await jest.advanceTimersByTimeAsync(400);
    expect(lease.signal.aborted).toBe(true);
    await app.close();
  });

  it('let real time end a lease once they are removed', async () => {
    jest.useFakeTimers();
    const { app, locks } = await start();
    const lease = await locks.acquire('order', { leaseTime: '300ms' });
    jest.useRealTimers();
    await locks.isLocked('order');
    await until(() => lease.signal.aborted);
    await app.close();
  });
});
