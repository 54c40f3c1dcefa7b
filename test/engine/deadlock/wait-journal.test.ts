import { BackendError } from '../../../lib/backends/backend-error.js';
import { InProcessWaits, WaitStore } from '../../../lib/backends/in-process-waits.js';
import type { WaitChange } from '../../../lib/backends/wait-backend.js';
import type { NestedWait } from '../../../lib/engine/deadlock/nested-wait.js';
import { WaitJournal } from '../../../lib/engine/deadlock/wait-journal.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('the journal of waits', () => {
  let runtime: VirtualRuntime;
  let waits: InProcessWaits;
  /** Whether the backend stores a change and the answer is lost, or does not get the change. */
  let fails: 'late' | 'early' | undefined;
  let written: WaitChange[][];
  let journal: WaitJournal;
  beforeEach(() => {
    written = [];
    runtime = new VirtualRuntime();
    waits = new InProcessWaits(new WaitStore(), runtime.monotonic, runtime.monotonic, async () => []);
    fails = undefined;
    const write: InProcessWaits['write'] = async (changes, lifetime) => {
      written.push([...changes]);
      if (fails !== 'early') await waits.write(changes, lifetime);
      if (fails !== undefined) throw new BackendError('no answer in time', 'unavailable', 'unknown');
    };
    journal = new WaitJournal({ ...waits, write } as unknown as InProcessWaits);
  });

  const wait = (id: string, ...holders: string[]) =>
    ({ id, beat: 0, record: {}, holds: new Set(holders) }) as unknown as NestedWait;

  /** The ids of the waits that are stored under a holder. */
  const stored = async (holder: string) => [...(await waits.read([holder]))[0].keys()];

  it('has each wait under all the owners that its caller holds', async () => {
    await journal.write([wait('one', 'a', 'b'), wait('two', 'b')]);
    expect([await stored('a'), await stored('b')]).toEqual([['one'], ['one', 'two']]);
    expect(journal.isEmpty).toBe(false);
  });

  it('loses the waits that are not written again', async () => {
    const one = wait('one', 'a');
    await journal.write([one, wait('two', 'a')]);
    await journal.write([one]);
    expect(await stored('a')).toEqual(['one']);
    await journal.write([]);
    expect(await stored('a')).toEqual([]);
    expect(journal.isEmpty).toBe(true);
  });

  it('keeps a wait for longer than the pause between two heartbeats, but not for long', async () => {
    await journal.write([wait('one', 'a')]);
    await runtime.advance(1_999);
    expect(await stored('a')).toEqual(['one']);
    await runtime.advance(1);
    expect(await stored('a')).toEqual([]);
  });

  it('loses a wait later if its removal failed', async () => {
    const [one, two] = [wait('one', 'a'), wait('two', 'a')];
    await journal.write([one, two]);
    fails = 'early';
    await expect(journal.write([one])).rejects.toThrow(BackendError);
    expect(await stored('a')).toEqual(['one', 'two']);
    fails = undefined;
    await journal.write([one]);
    expect(await stored('a')).toEqual(['one']);
  });

  it('loses a wait that was written without an answer and has ended', async () => {
    fails = 'late';
    await expect(journal.write([wait('one', 'a')])).rejects.toThrow(BackendError);
    expect(journal.isEmpty).toBe(false);
    fails = undefined;
    await journal.write([]);
    expect(await stored('a')).toEqual([]);
  });

  it('loses waits at once when they end', async () => {
    await journal.write([wait('one', 'a', 'b'), wait('two', 'b')]);
    journal.remove(new Set(['one', 'another']));
    await runtime.settle();
    expect([await stored('a'), await stored('b')]).toEqual([[], ['two']]);
  });

  it('has for each wait what it says of itself, and how often it was written', async () => {
    const one = wait('one', 'a');
    Object.defineProperty(one, 'record', { get: () => ({ lock: 'order', beat: one.beat }) });
    for (const beat of [1, 2]) {
      await journal.write([one]);
      expect(JSON.parse((await waits.read(['a']))[0].get('one') as string)).toEqual({ lock: 'order', beat });
    }
  });

  it('is written by one command for all owners, and by none if there is nothing to write', async () => {
    await journal.write([]);
    expect(written).toEqual([]);
    await journal.write([wait('one', 'a', 'b'), wait('two', 'b')]);
    expect(written).toHaveLength(1);
    await journal.write([]);
    expect(written[1].map(({ holder, waiting, ended }) => [holder, waiting.size, ended])).toEqual([
      ['a', 0, ['one']],
      ['b', 0, ['one', 'two']],
    ]);
    await journal.write([]);
    expect(written).toHaveLength(2);
  });

  it('removes only what was written, and may fail to', async () => {
    await journal.write([wait('one', 'a', 'b'), wait('two', 'b', 'c')]);
    journal.remove(new Set(['another']));
    expect(written).toHaveLength(1);
    fails = 'early';
    journal.remove(new Set(['one']));
    expect(written[1].map(({ holder, ended }) => [holder, ended])).toEqual([
      ['a', ['one']],
      ['b', ['one']],
    ]);
    await runtime.settle();
    fails = undefined;
    await journal.write([]);
    expect([await stored('a'), await stored('b'), await stored('c')]).toEqual([[], [], []]);
  });
});
