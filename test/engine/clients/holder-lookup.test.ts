import type { ClientRecord, LockBackend } from '../../../lib/backends/lock-backend.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { HolderLookup } from '../../../lib/engine/clients/holder-lookup.js';
import type { HolderClient } from '../../../lib/engine/describe-holder.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

const HOLD = {
  key: 'lock:order',
  type: 'reentrant',
  owner: 'ann:1',
  group: 'payments',
  method: '',
  heldFor: 500,
} as const;
const RECORD: ClientRecord = {
  clientId: 'ann',
  application: 'shop',
  host: 'web-1',
  pid: 7,
  version: '',
  since: 0,
  held: 1,
  waiting: 0,
  longestWait: 0,
  holds: [HOLD],
  waits: [],
};

describe('the lookup of the holder of a lock', () => {
  const open = ({ hasDirectory = true } = {}) => {
    const runtime = new VirtualRuntime();
    const memory = new MemoryBackend({ runtime, store: new MemoryStore() });
    const asked: string[] = [];
    let failure: Error | undefined;
    memory.directory.client = async (clientId) => {
      asked.push(clientId);
      if (failure !== undefined) throw failure;
      return clientId === 'ann' ? RECORD : undefined;
    };
    const backend: LockBackend = memory;
    if (!hasDirectory) Object.defineProperty(backend, 'directory', { value: undefined });
    const identity = { application: 'stock', host: 'web-2', pid: 8, version: '1.0' };
    const lookup = new HolderLookup({ backend, runtime, clientId: 'bob', identity });
    /** The lines that describe an owner. */
    const linesOn = async (owner: string | undefined, client?: HolderClient) => {
      const lines: string[] = [];
      await lookup.describe(owner, client, (line) => lines.push(line));
      return lines;
    };
    const fail = (error: Error | undefined) => {
      failure = error;
    };
    return { runtime, backend, asked, lookup, linesOn, fail };
  };

  it('tells who it is, and for how long the lock has been held by now', async () => {
    const { runtime, lookup } = open();
    expect(lookup.known('ann:1')).toBeUndefined();
    expect(await lookup.find('ann:1')).toMatchObject({ application: 'shop', group: 'payments', heldFor: 500 });
    await runtime.advance(250);
    expect(lookup.known('ann:1')).toMatchObject({ application: 'shop', heldFor: 750 });
    expect(lookup.known('ann:2')).toMatchObject({ application: 'shop', group: '' });
    expect(lookup.known('ann:2')).not.toHaveProperty('heldFor');
    expect(lookup.known(undefined)).toBeUndefined();
    expect(await lookup.find('eve:1')).toBeUndefined();
  });

  it('reads a record again after ten seconds, or after one if it does not mention the lock', async () => {
    const { runtime, asked, lookup } = open();
    const readsOf = async (owner: string) => {
      const before = asked.length;
      await lookup.find(owner);
      return asked.length - before;
    };
    expect(await readsOf('ann:1')).toBe(1);
    await runtime.advance(900);
    expect([await readsOf('ann:1'), await readsOf('ann:2')]).toEqual([0, 0]);
    await runtime.advance(200);
    expect([await readsOf('ann:1'), await readsOf('ann:2')]).toEqual([0, 1]);
    await runtime.advance(9_900);
    expect(await readsOf('ann:1')).toBe(0);
    await runtime.advance(200);
    expect(await readsOf('ann:1')).toBe(1);
  });

  it('reads the record of each client once for all that begin to wait, if they wait for a moment', async () => {
    const { runtime, asked, lookup } = open();
    for (const owner of ['ann:1', 'ann:2', 'eve:1', 'ann:1']) lookup.expect(owner);
    expect(runtime.timers).toBe(1);
    await runtime.advance(90);
    expect(asked).toEqual([]);
    await runtime.advance(20);
    expect(asked).toEqual(['ann', 'eve']);
    expect(lookup.known('ann:1')).toMatchObject({ application: 'shop' });
    lookup.expect('ann:1');
    await runtime.advance(200);
    expect(asked).toHaveLength(2);
  });

  it('asks nothing any more when it is closed', async () => {
    const { runtime, asked, lookup } = open();
    lookup.expect('ann:1');
    lookup.close();
    lookup.expect('eve:1');
    await runtime.advance(1_000);
    expect(await lookup.find('ann:1')).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('knows nobody any more when it is closed', async () => {
    const { asked, lookup } = open();
    await lookup.find('ann:1');
    lookup.close();
    expect([lookup.known('ann:1'), await lookup.find('ann:1'), asked]).toEqual([undefined, undefined, ['ann']]);
  });

  it('does not keep an answer that comes after it was closed', async () => {
    const { lookup } = open();
    const found = lookup.find('ann:1');
    lookup.close();
    expect(await found).toBeUndefined();
    expect(lookup.known('ann:1')).toBeUndefined();
  });

  it('knows nothing, and starts nothing, without a directory', async () => {
    const { runtime, lookup, linesOn } = open({ hasDirectory: false });
    lookup.expect('ann:1');
    expect(runtime.timers).toBe(0);
    expect(await lookup.find('ann:1')).toBeUndefined();
    expect(lookup.unrecorded('ann:1')).toBeUndefined();
    expect(await linesOn('ann:1')).toEqual(['ann:1']);
  });

  it('describes the holder of a lock of this process, and one that is known, without a question', async () => {
    const { runtime, asked, lookup, linesOn } = open();
    await runtime.advance(1_000);
    const terms = {
      onLost: 'throw',
      release: 'confirmed',
      reentry: true,
      holdAtMost: FOREVER,
      group: 'jobs',
      method: 'Jobs.run',
    } as const;
    const own = lookup.own({ since: 400, shares: [{ terms, lose: () => {}, requestEnd: () => {} }] });
    expect(own).toEqual({
      clientId: 'bob',
      application: 'stock',
      host: 'web-2',
      pid: 8,
      version: '1.0',
      group: 'jobs',
      method: 'Jobs.run',
      heldFor: 600,
    });
    const [line] = await linesOn('bob:1', own);
    for (const part of ['stock', 'web-2', 'Jobs.run', 'bob:1']) expect(line).toContain(part);
    expect(asked).toEqual([]);
  });

  it('describes other holders by their records, as far as there are any', async () => {
    const { linesOn } = open();
    const [[ann], [eve], [nobody]] = [await linesOn('ann:1'), await linesOn('eve:1'), await linesOn(undefined)];
    for (const part of ['shop', 'web-1', 'payments', 'ann:1']) expect(ann).toContain(part);
    expect(eve).toMatch(/record.*\(eve:1\)/);
    expect(nobody).not.toContain('undefined');
  });

  it('reads again for those that begin to wait later', async () => {
    const { runtime, asked, lookup } = open();
    lookup.expect('ann:1');
    await runtime.advance(100);
    lookup.expect('eve:1');
    await runtime.advance(100);
    expect(asked).toEqual(['ann', 'eve']);
    lookup.close();
    lookup.expect('joe:1');
    expect(runtime.timers).toBe(0);
  });

  it('has words for an owner without a record, before its record is read for one of Redisson only', async () => {
    const { lookup } = open();
    const redisson = '00000000-0000-4000-8000-000000000000:1';
    const words = () => [undefined, 'ann:1', 'eve:1', redisson].map((owner) => lookup.unrecorded(owner));
    expect(words()).toEqual([undefined, undefined, undefined, 'a Redisson client']);
    for (const owner of ['ann:1', 'eve:1', redisson]) await lookup.find(owner);
    expect(words()).toEqual([undefined, undefined, 'a client without a record', 'a Redisson client']);
  });

  it('knows nobody when the backend gives no answer, and asks again the next time', async () => {
    const { runtime, asked, lookup, linesOn, fail } = open();
    fail(new Error('no answer'));
    expect(await lookup.find('ann:1')).toBeUndefined();
    expect(await linesOn('ann:1')).toEqual(['ann:1']);
    lookup.expect('ann:1');
    await runtime.advance(200);
    expect(asked).toHaveLength(3);
    fail(undefined);
    expect(await lookup.find('ann:1')).toMatchObject({ application: 'shop' });
  });

  it('asks about a holder whose time is not known, although its client is', async () => {
    const { asked, linesOn } = open();
    const { heldFor: _, ...client } = { ...RECORD, group: '', method: '', heldFor: undefined };
    const [line] = await linesOn('ann:1', client);
    expect(asked).toEqual(['ann']);
    expect(line).toContain('payments');
  });

  it('forgets all records when there are a thousand, so that they take no more memory', async () => {
    const { lookup } = open();
    await lookup.find('ann:1');
    for (let n = 1; n < 1_000; n++) await lookup.find(`client-${n}:1`);
    expect(lookup.known('ann:1')).toBeDefined();
    await lookup.find('one more:1');
    expect(lookup.known('ann:1')).toBeUndefined();
    expect(lookup.unrecorded('one more:1')).toBeDefined();
  });

  it('describes a lock of this process without its caller, and not at all without an identity', async () => {
    const { runtime, backend, lookup } = open();
    await runtime.advance(1_000.4);
    expect(lookup.own({ since: 400, shares: [] })).toMatchObject({ group: '', method: '', heldFor: 600 });
    const anonymous = new HolderLookup({ backend, runtime, clientId: 'bob' });
    expect(anonymous.own({ since: 400, shares: [] })).toBeUndefined();
  });
});
