import { BackendError, type ClientRecord } from '../../../lib/backends/lock-backend.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

const IDENTITY = { application: 'shop', host: 'web-1', pid: 7, version: '' };

describe('the record of a client', () => {
  const open = (identity: typeof IDENTITY | null = IDENTITY) => {
    const runtime = new VirtualRuntime();
    const logger = new RecordingLogger();
    const backend = new MemoryBackend({ runtime, store: new MemoryStore() });
    const written: { readonly record: ClientRecord; readonly lifetime: number; readonly at: number }[] = [];
    const failure: { next?: BackendError } = {};
    backend.directory.writeClient = async (record, lifetime) => {
      written.push({ record, lifetime, at: runtime.monotonic() });
      if (failure.next !== undefined) throw failure.next;
    };
    const locks = new LockEngine({
      ...ENGINE_DEFAULTS,
      backend,
      runtime,
      logger,
      clientId: 'ann',
      identity: identity ?? undefined,
      watchdogTimeout: ms(30_000),
      waiterTimeout: ms(5_000),
      shutdownTimeout: ms(100),
    });
    return { locks, logger, runtime, written, failure, times: () => written.map(({ at }) => at) };
  };

  it('is written a second after something is held, every ten seconds while that does not change, and removed at the end', async () => {
    const { locks, runtime, written, times } = open();
    const since = runtime.wall();
    await locks.acquire('order');
    await runtime.advance(25_000);
    expect(times()).toEqual([1_000, 11_000, 21_000]);
    expect(written[0]).toMatchObject({
      lifetime: 30_000,
      record: {
        ...IDENTITY,
        clientId: 'ann',
        since,
        held: 1,
        waiting: 0,
        holds: [{ type: 'reentrant', owner: 'ann:1' }],
      },
    });
    await runtime.until(locks.close());
    expect(written.at(-1)).toMatchObject({ lifetime: 0 });
    const { length } = written;
    await runtime.advance(60_000);
    expect(written).toHaveLength(length);
  });

  it('is written again early when something else is held for a second', async () => {
    const { locks, runtime, times, written } = open();
    await locks.acquire('order');
    await runtime.advance(1_500);
    await locks.acquire('stock');
    await runtime.advance(3_500);
    expect(times()).toHaveLength(2);
    expect(times()[1]).toBeLessThanOrEqual(4_000);
    expect(written[1].record.holds).toHaveLength(2);
  });

  it('is not written while nothing is held for long, nor by a service without an identity', async () => {
    const { locks, runtime, written } = open();
    const lease = await locks.acquire('order');
    await runtime.advance(500);
    await lease.release();
    await runtime.advance(60_000);
    expect(written).toEqual([]);
    const nameless = open(null);
    await nameless.locks.acquire('order');
    await runtime.advance(60_000);
    expect(nameless.written).toEqual([]);
  });

  it('is written again after an outage, without a warning', async () => {
    const { locks, logger, runtime, written, failure } = open();
    failure.next = new BackendError('no answer in time', 'unavailable', 'unknown');
    await locks.acquire('order');
    await runtime.advance(12_000);
    expect(written.length).toBeGreaterThan(1);
    expect(logger.warnings).toEqual([]);
  });

  it('is given up with one warning if the service may not write it', async () => {
    const { locks, logger, runtime, written, failure } = open();
    failure.next = new BackendError('NOPERM', 'denied', 'refused');
    await locks.acquire('order');
    await runtime.advance(60_000);
    expect(written).toHaveLength(1);
    expect(logger.warnings).toEqual([expect.stringContaining('NOPERM')]);
  });

  it('shows the first 20 of many locks, the oldest first, and the longest waits', async () => {
    const { locks, runtime, written } = open();
    for (let n = 0; n < 25; n++) {
      await locks.acquire(`order:${n}`);
      await runtime.advance(10);
    }
    void locks.acquire('order:0').catch(() => {});
    await runtime.advance(300);
    void locks.acquire('order:1').catch(() => {});
    await runtime.advance(12_000);
    const { record } = written.at(-1) as (typeof written)[0];
    expect([record.held, record.waiting]).toEqual([25, 2]);
    expect(record.holds).toHaveLength(20);
    expect(record.holds[0].heldFor).toBeGreaterThan(record.holds[19].heldFor);
    expect(record.waits.map(({ key }) => key.split(':').slice(-2).join(':'))).toEqual(['order:0', 'order:1']);
  });
});
