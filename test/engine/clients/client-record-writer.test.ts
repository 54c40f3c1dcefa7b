import { BackendError, type ClientRecord, type LockBackend } from '../../../lib/backends/lock-backend.js';
import { MemoryBackend } from '../../../lib/backends/memory/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/memory/memory-store.js';
import { ClientRecordWriter, type RecordContents } from '../../../lib/engine/clients/client-record-writer.js';
import { RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

const IDENTITY = { application: 'shop', host: 'web-1', pid: 7, version: '' };
const NOTHING_HELD: RecordContents = { held: 0, waiting: 0, longestWait: 0, holds: [], waits: [] };

/** Locks that were held for so long. */
const holding = (...held: readonly [owner: string, heldFor: number][]): RecordContents => ({
  ...NOTHING_HELD,
  held: held.length,
  holds: held.map(([owner, heldFor]) => ({
    key: 'lock:order',
    type: 'reentrant',
    owner,
    group: '',
    method: '',
    heldFor,
  })),
});

describe('the writer of the record of a client', () => {
  const open = (settings: { readonly identity?: undefined; readonly failure?: Error } = {}) => {
    const runtime = new VirtualRuntime();
    const backend: LockBackend = new MemoryBackend({ runtime, store: new MemoryStore() });
    const written: (Pick<ClientRecord, 'held'> & { readonly at: number; readonly lifetime: number })[] = [];
    const { failure } = settings;
    backend.directory!.writeClient = async ({ held }, lifetime) => {
      written.push({ held, at: runtime.monotonic(), lifetime });
      if (failure !== undefined) throw failure;
    };
    const logger = new RecordingLogger();
    const service = { contents: holding(['ann:1', 1_000]) };
    const writer = new ClientRecordWriter(
      { backend, runtime, clientId: 'ann', identity: IDENTITY, ...settings },
      logger,
      () => service.contents,
    );
    return { runtime, written, logger, service, writer };
  };

  it('writes it a second after something is held, and again every ten seconds while that does not change', async () => {
    const { runtime, written, writer } = open();
    writer.noticed();
    writer.noticed();
    await runtime.advance(22_000);
    expect(written).toEqual([1_000, 11_000, 21_000].map((at) => ({ at, held: 1, lifetime: 30_000 })));
  });

  it('writes it two seconds after the last time when something else is held, once that has lasted for a second', async () => {
    const { runtime, written, writer, service } = open();
    writer.noticed();
    await runtime.advance(1_500);
    service.contents = holding(['ann:1', 1_500], ['ann:2', 10]);
    await runtime.advance(4_000);
    expect(written.map(({ at }) => at)).toEqual([1_000]);
    service.contents = holding(['ann:1', 5_500], ['ann:2', 4_000]);
    await runtime.advance(1_000);
    expect(written.map(({ at }) => at)).toEqual([1_000, 6_000]);
    service.contents = holding(['ann:3', 1_000]);
    await runtime.advance(4_500);
    expect(written.map(({ at }) => at)).toEqual([1_000, 6_000, 8_000]);
  });

  it('writes none while nothing is held', async () => {
    const { runtime, written, writer, service } = open();
    service.contents = NOTHING_HELD;
    writer.noticed();
    await runtime.advance(60_000);
    expect(written).toEqual([]);
    expect(runtime.timers).toBe(0);
  });

  it('removes it once when the service closes, and writes none after that', async () => {
    const { runtime, written, writer } = open();
    writer.noticed();
    await runtime.advance(1_000);
    await writer.leave();
    await writer.leave();
    writer.noticed(0);
    await runtime.advance(60_000);
    expect(written.slice(1)).toEqual([{ at: 1_000, held: 0, lifetime: 0 }]);
    expect(runtime.timers).toBe(0);
  });

  it('removes none that was not written', async () => {
    const { runtime, written, writer } = open();
    writer.noticed();
    await runtime.advance(900);
    await writer.leave();
    await runtime.advance(60_000);
    expect(written).toEqual([]);
  });

  it('writes none for a service without an identity', async () => {
    const { runtime, writer, written } = open({ identity: undefined });
    writer.noticed();
    expect(runtime.timers).toBe(0);
    await writer.leave();
    expect(written).toEqual([]);
  });

  it('stops, and warns once, when it may not write', async () => {
    const { runtime, written, writer, logger } = open({
      failure: new BackendError('no permission', 'denied', 'refused'),
    });
    writer.noticed();
    await runtime.advance(60_000);
    writer.noticed();
    await runtime.advance(60_000);
    expect(written).toHaveLength(1);
    expect(logger.warnings).toHaveLength(1);
  });

  it('continues, without a warning, after an outage', async () => {
    const { runtime, written, writer, logger } = open({
      failure: new BackendError('no answer', 'unavailable', 'unknown'),
    });
    writer.noticed();
    await runtime.advance(12_000);
    expect(written).toHaveLength(2);
    expect(logger.warnings).toEqual([]);
  });
});
