import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

/** Counts how often the clock is read. */
class ReadClock extends VirtualRuntime {
  reads = 0;

  constructor() {
    super();
    const { monotonic } = this;
    this.monotonic = () => {
      this.reads++;
      return monotonic();
    };
  }
}

it('an acquisition reads the clock for those who listen, and only for them', async () => {
  const runtime = new ReadClock();
  const engine = new LockEngine({
    ...ENGINE_DEFAULTS,
    backend: new MemoryBackend({ runtime, store: new MemoryStore() }),
    runtime,
    logger: new RecordingLogger(),
    clientId: 'client',
    watchdogTimeout: ms(30_000),
    waiterTimeout: ms(30_000),
    shutdownTimeout: ms(0),
  });
  const reads = async () => {
    const before = runtime.reads;
    const lease = await engine.acquire('order');
    const { reads } = runtime;
    await lease.release();
    return reads - before;
  };
  await reads();
  const unwatched = await reads();
  const off = engine.on('failed', () => {});
  const watched = await reads();
  off();
  expect(unwatched).toBeLessThan(watched);
  expect(await reads()).toBe(unwatched);
  await runtime.until(engine.close());
});
