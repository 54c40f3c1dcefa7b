import { setTimeout as sleep } from 'node:timers/promises';
import { BackendError } from '../../../lib/backends/lock-backend.js';
import type { LockService } from '../../../lib/core.js';
import { openVirtualWorld, openWorld, type VirtualProcess } from '../../support/lock-world.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { latch } from '../../support/section.js';
import { startRedis } from '../../support/servers/redis-server.js';
import { ServerClock } from '../../support/servers/server-clock.js';
import { until } from '../../support/until.js';
import { type Disturbance, refused } from '../../support/watched/watched-backend.js';

/** In milliseconds. */
const COMMAND_TIMEOUT = 2_000;
/** For how long a result is kept, in milliseconds: a slow machine asks twice within it. */
const LONG_ENOUGH = 1_000;
/** The clock of tokens may be this many milliseconds ahead when it is new. */
const CLOCK_LEAD = 200;

const unanswered = () => new BackendError('no answer in time', 'unavailable', 'unknown');

describe('a result whose release is late', () => {
  const world = openVirtualWorld();

  /** `ann` runs, and `bob` waits for her result. */
  const flying = async (keepFor = 0) => {
    const [ann, bob, cem] = [await world.process(), await world.process(), await world.process()];
    const { runtime } = ann;
    const body = latch();
    const answer = latch();
    const own = ann.locks.singleFlight('a', { keepFor }, async () => {
      await body.promise;
      return 'ann';
    });
    await runtime.advance(CLOCK_LEAD);
    const waiting = ask(bob);
    await runtime.advance(CLOCK_LEAD);
    const isAnswered = { ann: false };
    void own.then(() => {
      isAnswered.ann = true;
    });
    return { ann, bob, cem, runtime, body, answer, own, waiting, isAnswered };
  };
  const ask = ({ locks }: { readonly locks: LockService }, keepFor = 0, name = 'another') =>
    locks.singleFlight('a', { keepFor }, async () => name);

  /** Each release is answered by nothing within the command timeout, or after `time`. It is executed once healed. */
  const silent =
    ({ runtime }: VirtualProcess, time = COMMAND_TIMEOUT): Disturbance =>
    () =>
      new Promise((_resolve, reject) => {
        runtime.timer(time, () => reject(unanswered()));
      });

  it('goes to those who asked before the runner had its answer, and to nobody who asked later', async () => {
    const { ann, cem, runtime, body, own, waiting } = await flying();
    ann.backend.disturb(silent(ann), 'release');
    body.open();
    expect(await runtime.until(own)).toBe('ann');
    const late = ask(cem);
    await runtime.advance(1_000);
    ann.backend.heal();
    await runtime.advance(2 * COMMAND_TIMEOUT);
    expect(await runtime.until(waiting)).toBe('ann');
    expect(await runtime.until(late)).toBe('another');
  });

  it('is as old as the run, not as the store', async () => {
    const { ann, cem, runtime, body, own, waiting } = await flying(5_000);
    ann.backend.disturb(silent(ann), 'release');
    body.open();
    await runtime.until(own);
    await runtime.advance(10_000);
    ann.backend.heal();
    await runtime.advance(2 * COMMAND_TIMEOUT);
    expect(await runtime.until(waiting)).toBe('ann');
    expect(await runtime.until(ask(cem, 5_000))).toBe('another');
  });

  it('keeps its runner until no copy can be executed in time, if a connection broke under the release', async () => {
    const { ann, cem, runtime, body, own, isAnswered } = await flying();
    ann.backend.disturb(silent(ann, 1), 'release');
    body.open();
    await runtime.advance(COMMAND_TIMEOUT / 2);
    expect(isAnswered.ann).toBe(false);
    const late = ask(cem);
    await runtime.advance(COMMAND_TIMEOUT / 2 + 1);
    expect(await own).toBe('ann');
    ann.backend.heal();
    expect(await runtime.until(late)).toBe('ann');
  });

  it('lets its runner go as soon as a repetition is answered', async () => {
    const { ann, runtime, body, own, waiting, isAnswered } = await flying();
    ann.backend.disturb(silent(ann, 1), 'release');
    body.open();
    await runtime.advance(COMMAND_TIMEOUT / 4);
    ann.backend.heal();
    await runtime.advance(COMMAND_TIMEOUT / 2);
    expect(isAnswered.ann).toBe(true);
    expect(await own).toBe('ann');
    expect(await waiting).toBe('ann');
  });

  it('lets its runner go at once where nothing was sent, and then goes to nobody who asks later', async () => {
    const { ann, cem, runtime, body, own, waiting, isAnswered } = await flying();
    ann.backend.disturb(refused, 'release');
    body.open();
    await runtime.advance(1);
    expect(isAnswered.ann).toBe(true);
    await own;
    const late = ask(cem);
    await runtime.advance(COMMAND_TIMEOUT / 4);
    ann.backend.heal();
    expect(await runtime.until(waiting)).toBe('ann');
    expect(await runtime.until(late)).toBe('another');
  });
});

describe('a result of a backend whose clock was set back by an hour', () => {
  const HOUR = 3_600_000;
  const memory = openVirtualWorld();
  const world = openWorld('Redis');

  it('is not kept for longer than keepFor in memory', async () => {
    const { locks, runtime } = await memory.process();
    await locks.singleFlight('a', { keepFor: 1_000 }, async () => 1);
    await runtime.advance(1_001);
    runtime.setWallClock(-HOUR);
    expect(await locks.singleFlight('a', { keepFor: 1_000 }, async () => 2)).toBe(2);
    await runtime.advance(900);
    expect(await locks.singleFlight('a', { keepFor: 1_000 }, async () => 3)).toBe(2);
    await runtime.advance(200);
    expect(await locks.singleFlight('a', { keepFor: 1_000 }, async () => 4)).toBe(4);
  });

  it('is not kept for longer than keepFor in Redis', async () => {
    const clock = ServerClock.make();
    if (clock === undefined)
      return console.warn('skipped: the clock of Redis is not set, because there is no C compiler');
    const redis = await startRedis({ env: clock.env });
    try {
      const locks = await world.service({ connection: redis.url });
      await locks.singleFlight('a', { keepFor: LONG_ENOUGH }, async () => 1);
      clock.set(-HOUR / 1_000);
      expect(await locks.singleFlight('a', { keepFor: LONG_ENOUGH }, async () => 2)).toBe(2);
      expect(await locks.singleFlight('a', { keepFor: LONG_ENOUGH }, async () => 3)).toBe(2);
      await sleep(LONG_ENOUGH);
      expect(await locks.singleFlight('a', { keepFor: LONG_ENOUGH }, async () => 4)).toBe(4);
    } finally {
      await world.tidy();
      await redis.stop();
      clock.remove();
    }
  });
});

describe('a release that a slow link delivers late', () => {
  const world = openWorld('Redis');
  let proxy: TcpProxy | undefined;
  afterEach(async () => {
    await proxy?.stop();
    proxy = undefined;
  });

  it.each([0, 500])('gives its result to nobody who asked after the runner had it (keepFor %d)', async (keepFor) => {
    proxy = await startTcpProxy(world.redis.port);
    const ann = await world.process({ connection: proxy.url, commandTimeout: 300 });
    const [bob, cem] = await world.processes(2);
    await bob.locks.singleFlight('b', async () => 'loads the scripts');
    const body = latch();
    let runs = 0;
    const own = ann.locks.singleFlight('a', { keepFor }, async () => {
      runs++;
      await body.promise;
      return 'ann';
    });
    await until(() => runs === 1);
    const waiting = bob.locks.singleFlight('a', async () => 'bob');
    await until(() => bob.backend.isAsleep);
    proxy.holdUp({ requests: () => 1_000 + keepFor });
    body.open();
    expect(await own).toBe('ann');
    proxy.holdUp();
    await sleep(keepFor);
    const late = cem.locks.singleFlight('a', { keepFor }, async () => 'cem');
    expect(await waiting).toBe('ann');
    expect(await late).toBe('cem');
  });
});
