import { BackendError, type ClientRecord, type LockBackend } from '../../../lib/backends/lock-backend.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { ClientRecordWriter, type RecordContents } from '../../../lib/engine/clients/client-record-writer.js';
import { RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { latch } from '../../support/section.js';

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

const waitFor = (key: string) => ({ key, type: 'reentrant', group: '', method: '', waiters: 1, waitedFor: 0 }) as const;

describe('the writer of the record of a client', () => {
  const open = (
    settings: { readonly identity?: undefined; readonly failure?: Error; readonly hasDirectory?: false } = {},
  ) => {
    const runtime = new VirtualRuntime();
    const backend: LockBackend = new MemoryBackend({ runtime, store: new MemoryStore() });
    const written: (Pick<ClientRecord, 'held'> & { readonly at: number; readonly lifetime: number })[] = [];
    const { failure, hasDirectory } = settings;
    const records: ClientRecord[] = [];
    const answer = { next: Promise.resolve() };
    backend.directory!.writeClient = async (record, lifetime) => {
      records.push(record);
      written.push({ held: record.held, at: runtime.monotonic(), lifetime });
      if (failure !== undefined) throw failure;
      await answer.next;
    };
    if (hasDirectory === false) Object.defineProperty(backend, 'directory', { value: undefined });
    const checks: number[] = [];
    const logger = new RecordingLogger();
    const service = { contents: holding(['ann:1', 1_000]) };
    const writer = new ClientRecordWriter(
      { backend, runtime, clientId: 'ann', identity: IDENTITY, ...settings },
      logger,
      () => {
        checks.push(runtime.monotonic());
        return service.contents;
      },
    );
    return { runtime, written, records, checks, answer, logger, service, writer };
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

  it('says who the client is, since when, and what it holds and waits for', async () => {
    const { runtime, records, writer, service } = open();
    service.contents = { ...service.contents, waiting: 2, longestWait: 300, waits: [waitFor('lock:stock')] };
    writer.noticed();
    await runtime.advance(1_000);
    const since = Date.parse('2025-01-01T00:00:00Z');
    expect(records).toEqual([{ ...IDENTITY, clientId: 'ann', since, ...service.contents }]);
    await writer.leave();
    expect(records[1]).toEqual({ ...IDENTITY, clientId: 'ann', since, ...NOTHING_HELD });
  });

  it('writes it again early when another lock is waited for, but not because the order has changed', async () => {
    const { runtime, written, writer, service } = open();
    const waits = [waitFor('lock:a'), waitFor('lock:b')];
    service.contents = { ...service.contents, waits };
    writer.noticed();
    await runtime.advance(1_000);
    service.contents = { ...service.contents, waits: [waits[1], waits[0]] };
    await runtime.advance(5_000);
    expect(written.map(({ at }) => at)).toEqual([1_000]);
    service.contents = { ...service.contents, waits: [waits[1], waitFor('lock:c')] };
    await runtime.advance(1_000);
    expect(written.map(({ at }) => at)).toEqual([1_000, 7_000]);
  });

  it('writes it every ten seconds while nothing is held any more, and checks sooner once something is held', async () => {
    const { runtime, written, writer, service } = open();
    writer.noticed();
    await runtime.advance(1_500);
    service.contents = NOTHING_HELD;
    await runtime.advance(9_000);
    expect(written.map(({ at }) => at)).toEqual([1_000]);
    await runtime.advance(10_600);
    expect(written.slice(1)).toEqual([11_000, 21_000].map((at) => ({ at, held: 0, lifetime: 30_000 })));
    await runtime.advance(2_900); // 24 s
    service.contents = holding(['ann:2', 1_000]);
    writer.noticed();
    await runtime.advance(1_000);
    expect(written.slice(3)).toEqual([{ at: 25_000, held: 1, lifetime: 30_000 }]);
  });

  it.each([
    [9_000, 1_000],
    [50_000, 5_000],
    [1_000_000, 10_000],
  ])('checks less often while very much is held: with %i locks every %i ms', async (held, pause) => {
    const { runtime, checks, writer, service } = open();
    service.contents = { ...service.contents, held: held - 1, waiting: 1 };
    writer.noticed(0);
    await runtime.advance(0);
    writer.noticed(0); // changes nothing, because the next check is soon enough
    await runtime.advance(2 * pause);
    expect(checks).toEqual([0, pause, 2 * pause]);
  });

  it('removes it after the answer to the last one, so that it does not come back', async () => {
    const { runtime, written, writer, answer } = open();
    const answered = latch();
    answer.next = answered.promise;
    writer.noticed();
    await runtime.advance(1_000);
    let over = false;
    const left = writer.leave().then(() => {
      over = true;
    });
    await runtime.settle();
    expect([written.length, over]).toEqual([1, false]);
    const removed = latch();
    answer.next = removed.promise;
    answered.open();
    await runtime.settle();
    expect([written.length, over]).toEqual([2, false]);
    removed.open();
    await left;
    expect(written.map(({ lifetime }) => lifetime)).toEqual([30_000, 0]);
  });

  it('writes none for a backend without a directory', async () => {
    const { runtime, writer } = open({ hasDirectory: false });
    writer.noticed();
    expect(runtime.timers).toBe(0);
    await writer.leave();
  });

  it('does not warn of a refusal that comes after it was closed', async () => {
    const { runtime, writer, logger, answer } = open();
    const answered = latch();
    answer.next = answered.promise.then(() => Promise.reject(new BackendError('no', 'denied', 'refused')));
    writer.noticed();
    await runtime.advance(1_000);
    writer.close();
    expect(runtime.timers).toBe(0);
    answered.open();
    await runtime.settle();
    expect(logger.warnings).toEqual([]);
  });
});
