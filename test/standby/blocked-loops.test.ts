import { until } from '../support/until.js';
import { BLOCK, BlockedWorld, LEASE, startBlocked } from './blocked-process.js';

describe('locks of a process whose event loop is blocked for longer than their lease', () => {
  const world = new BlockedWorld();

  const EXCLUSIVE = ['reentrant', 'fair', 'fenced', 'write', 'several', 'flight', 'long', 'handOff', 'leader'];
  const KINDS = [...EXCLUSIVE, 'read', 'permits', 'semaphore', 'extended', 'reentry'];

  it('are kept, of all kinds', async () => {
    const blocked = startBlocked(KINDS, { connection: world.server.url });
    await blocked.ready();
    const names = ['reentrant', 'fair', 'fenced', 'w', 'several:1', 'several:2', 'leader', 'handOff', 'rw', 'extended'];
    const entered: string[] = [];
    const tries = (async () => {
      while (!blocked.said.some(({ kind }) => kind !== undefined)) {
        for (const name of names) {
          const lease = await world.others.tryAcquire(
            name,
            name === 'fair'
              ? { type: 'fair' }
              : name === 'fenced'
                ? { type: 'fenced' }
                : ['w', 'rw'].includes(name)
                  ? { type: 'write' }
                  : {},
          );
          if (lease !== null && !blocked.said.some(({ kind }) => kind !== undefined)) entered.push(name);
          await lease?.release();
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    await blocked.done();
    await tries;
    expect(entered).toEqual([]);
    for (const kind of KINDS) {
      const { belief, end } = blocked.of(kind);
      expect(belief).toMatchObject({ kind, held: true, aborted: kind === 'reentry' ? expect.anything() : false });
      expect(end).toEqual({ kind, result: 'result' });
    }
    expect(blocked.said.filter(({ lost }) => lost !== undefined)).toEqual([]);
    const [{ blocked: event } = { blocked: undefined }] = blocked.said.filter((one) => one.blocked !== undefined);
    expect(event?.blockedFor).toBeGreaterThan(BLOCK - LEASE);
    expect(event?.kept).toBeGreaterThanOrEqual(KINDS.length);
    expect(event?.remainingTime).toBeGreaterThan(0);
    expect(blocked.warnings.filter((text) => /was blocked for \d\.\d s; a thread kept \d+ /.test(text))).toHaveLength(
      1,
    );
    await until(async () => (await world.redis.keys('lock:*')).join() === 'lock:semaphore');
  });

  it('are lost without the option', async () => {
    const blocked = startBlocked(
      ['reentrant', 'semaphore'],
      { connection: world.server.url },
      { options: { keepWhileBlocked: 0 } },
    );
    await blocked.done();
    expect(blocked.of('reentrant')).toMatchObject({
      belief: { held: false, aborted: true },
      end: { failed: expect.stringContaining('because the event loop of this process was blocked for') },
    });
  });

  it('are left to lapse after holdAtMost, although nobody else knows the time', async () => {
    const blocked = startBlocked(['atMost'], { connection: world.server.url });
    await blocked.ready();
    const since = performance.now();
    const lease = await world.others.acquire('atMost', { waitTime: '20s' });
    expect(performance.now() - since).toBeLessThan(1_000 + LEASE + 1_500);
    await blocked.done();
    expect(blocked.of('atMost').belief).toMatchObject({ held: false });
    await lease.release();
  });

  it('are lost at once when they were released by force meanwhile', async () => {
    const blocked = startBlocked(['reentrant', 'fenced'], { connection: world.server.url });
    await blocked.ready();
    await world.others.forceRelease('reentrant');
    await blocked.done();
    const { belief, end } = blocked.of('reentrant');
    expect(belief).toMatchObject({ held: false, aborted: true });
    expect(end?.failed).toContain('it no longer existed at renewal');
    expect(blocked.of('fenced').end).toMatchObject({ result: 'result' });
  });
});
