import { BackendError, type ClientRecord } from '../../../lib/backends/lock-backend.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('the warning of a long wait', () => {
  /** Waits for the lock of another client, whose record is read as `record` says. @returns what the warning calls it */
  const holderInWarning = async (record: () => Promise<ClientRecord | undefined>) => {
    const runtime = new VirtualRuntime();
    const logger = new RecordingLogger();
    const store = new MemoryStore();
    const open = (clientId: string) => {
      const backend = new MemoryBackend({ runtime, store });
      backend.directory.client = record;
      return new LockEngine({
        ...ENGINE_DEFAULTS,
        backend,
        runtime,
        logger,
        clientId,
        watchdogTimeout: ms(30_000),
        waiterTimeout: ms(5_000),
        shutdownTimeout: ms(100),
      });
    };
    const [ann, ben] = [open('ann'), open('ben')];
    const held = await ann.acquire('order');
    const waiting = ben.acquire('order');
    await runtime.advance(31_000);
    const [warning] = logger.warnings;
    await held.release();
    await (await runtime.until(waiting)).release();
    await runtime.until(Promise.all([ann.close(), ben.close()]));
    expect(held.owner).toBe('ann:1');
    return warning.replace(/^A caller has waited for the lock 'order' for over 30 s; held by /, '');
  };

  it('says why the client of the holder may have no record', async () => {
    expect(await holderInWarning(async () => undefined)).toMatch(
      /^a client without a record: its process has ended, .* \(ann:1\)$/,
    );
  });

  it('does not say so of a client whose record could not be read', async () => {
    const unread = () => Promise.reject(new BackendError('no answer', 'unavailable', 'unknown'));
    expect(await holderInWarning(unread)).toBe('ann:1');
  });
});
