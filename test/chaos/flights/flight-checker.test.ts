import { setTimeout as sleep } from 'node:timers/promises';
import { createLockService, MemoryBackend, MemoryStore, nodeRuntime } from '../../../lib/core.js';
import {
  breakFlights,
  type FlightBreakage,
  forgetsNothing,
  forgetsResultsAlone,
  givesOldResults,
  grantsTwice,
  losesQuestions,
  mixesNames,
} from './broken-flights.js';
import { checkFlights, countFlights, type FlightExpectations } from './flight-checker.js';
import type { FlightEvent, FlightRecord } from './flight-history.js';
import { FlightLoad } from './flight-load.js';
import { checkServerOrder, type ServerEvent, type ServerRecord } from './server-order.js';

const STRICT: FlightExpectations = { answeredWithin: 20_000, storedWithin: 0, ageSlack: 250 };
const logger = { warn: () => {}, error: () => {} };

/** Runs four services that share a store in memory for this many milliseconds. */
async function play(breakage: FlightBreakage, time: number): Promise<FlightRecord[]> {
  const store = new MemoryStore();
  const records: FlightRecord[] = [];
  const services = Array.from({ length: 4 }, () => {
    const backend = breakFlights(new MemoryBackend({ runtime: nodeRuntime, store }), breakage);
    return createLockService({ backend, logger, shutdownTimeout: 10 });
  });
  const loads = services.map((locks, n) => {
    const options = { names: 12, callers: 4, keepFor: 300, longBody: 100, seed: n + 1 };
    const process = `p${n + 1}`;
    return new FlightLoad(process, locks, options, (at, event) => records.push({ at, process, ...event }));
  });
  await sleep(time);
  const stopped = Promise.all(loads.map((load) => load.stop()));
  await Promise.race([stopped, sleep(2_000)]);
  const seen = [...records]; // before callers that wait for ever are refused
  await Promise.all(services.map((locks) => locks.close()));
  return seen;
}

const rulesOf = (records: readonly FlightRecord[], expectations = STRICT) => [
  ...new Set(checkFlights(records, expectations).map(({ rule }) => rule)),
];

/** A history of one process, a millisecond for each event. */
const made = (...events: FlightEvent[]): FlightRecord[] =>
  events.map((event, n) => ({ at: n + 1, process: 'p', ...event }));
const asked = (call: string, keepFor = 0): FlightEvent => ({ kind: 'asked', call, name: 'a', keepFor });
const began = (run: string): FlightEvent => ({ kind: 'began', run, name: 'a', owner: `owner ${run}` });
const answered = (call: string, run: string): FlightEvent => ({ kind: 'answered', call, run });

describe('the checker of single flights', () => {
  it('finds no violation in a long history of a sound backend', async () => {
    const records = await play(() => ({}), 1_500);
    expect(checkFlights(records, STRICT)).toEqual([]);
    const { ran, shared, failed, forgot } = countFlights(records);
    expect(Math.min(ran, shared)).toBeGreaterThan(50);
    expect(Math.min(failed, forgot)).toBeGreaterThan(5);
  });

  it.each<[string, string, () => FlightBreakage]>([
    ['grants a lock that is held', 'one run at a time', () => grantsTwice],
    ['does not answer', 'answered', () => losesQuestions],
    ['stores the result of another name', 'a real run', () => mixesNames],
    [
      'gives results to callers that asked later',
      'not older than the question',
      () => givesOldResults((keepFor, age) => keepFor === 0 && age > 50 && age < 300),
    ],
    [
      'keeps results for too long',
      'not older than keepFor',
      () => givesOldResults((keepFor, age) => keepFor > 0 && age > 600),
    ],
    ['forgets nothing', 'not forgotten', () => forgetsNothing],
    ['keeps a run that was forgotten while it ran', 'not forgotten', () => forgetsResultsAlone],
  ])('finds a backend that %s', async (_, rule, breakage) => {
    expect(rulesOf(await play(breakage(), 2_000))).toContain(rule);
  });

  it('regards a run as ended when its lease is no longer held, or when the data was lost', () => {
    const held: FlightEvent = { kind: 'held', run: '1' };
    const sound = made(asked('1'), asked('2'), began('1'), held, began('2'), answered('1', '1'), answered('2', '2'));
    expect(rulesOf(sound)).toEqual([]);
    const two = made(asked('1'), asked('2'), began('1'), began('2'), held, answered('1', '1'), answered('2', '2'));
    expect(rulesOf(two)).toEqual(['one run at a time']);
    const lost = made(asked('1'), asked('2'), began('1'), { kind: 'data lost' }, began('2'), held);
    expect(rulesOf([...lost, { at: 9, process: 'p', kind: 'crashed' }])).toEqual([]);
  });

  describe("in the server's order", () => {
    const [a, b] = ['owner 1', 'owner 2'];
    /** The records of the server, each after this many events of the process. */
    const did = (...events: (ServerEvent & { after: number })[]): ServerRecord[] =>
      events.map(({ after, ...event }) => ({ ...event, time: 1_000 * after, seen: after + 0.5 }));
    const key = 'lock:a';
    const taken = (after: number, owner = a) => ({ after, kind: 'taken', key, owner }) as const;
    const leased = (after: number, until: number) => ({ after, kind: 'leased', key, until }) as const;
    const stored = (after: number, owner = a) => ({ after, kind: 'stored', key, owner }) as const;
    const released = (after: number, owner = a) => ({ after, kind: 'released', key, owner }) as const;
    const forgotten = (after: number) => ({ after, kind: 'forgotten', key }) as const;
    const rulesIn = (records: readonly FlightRecord[], server: readonly ServerRecord[]) =>
      checkServerOrder(records, server, { prefix: 'lock:', ageSlack: 0 }).map(({ rule }) => rule);
    const begun = [asked('1'), began('1')];

    it('finds an owner that got a lock which another one held', () => {
      expect(rulesIn([], did(taken(1), leased(1, 3_000), taken(2, b)))).toEqual(['one run at a time']);
      expect(rulesIn([], did(taken(1), leased(1, 3_000), taken(3, b)))).toEqual([]);
      expect(rulesIn([], did(taken(1), leased(1, 3_000), released(2), taken(2, b)))).toEqual([]);
    });

    it('finds a result that was stored after its owner had lost the lock', () => {
      expect(rulesIn([], did(taken(1), leased(1, 2_000), stored(2)))).toEqual([]);
      expect(rulesIn([], did(taken(1), leased(1, 2_000), stored(3)))).toEqual(['stored by the holder']);
      expect(rulesIn([], did(taken(1), leased(1, 2_000), taken(3, b), stored(3)))).toEqual(['stored by the holder']);
      expect(rulesIn([], did(taken(1), released(2), stored(3)))).toEqual(['stored by the holder']);
    });

    it.each([
      [0, 'not older than the question'],
      [1, 'not older than keepFor'],
    ] as const)('finds a result that is too old for a caller with keepFor %d', (keepFor, rule) => {
      const late = made(...begun, { kind: 'answered', call: '1', run: '1' }, asked('2', keepFor), answered('2', '1'));
      expect(rulesIn(late, did(taken(0), stored(2), released(2)))).toEqual([rule]);
      expect(rulesIn(late, did(taken(0), stored(4), released(4)))).toEqual([]);
    });

    it('finds a result that was never stored, except for callers in the process of its run', () => {
      const joined = made(asked('2'), ...begun, answered('2', '1'));
      const elsewhere = joined.map((record) =>
        'call' in record && record.call === '2' ? { ...record, process: 'q' } : record,
      );
      expect(rulesIn(joined, did(taken(0)))).toEqual([]);
      expect(rulesIn(elsewhere, did(taken(0)))).toEqual(['a real run']);
    });

    it('allows a new owner after the data was lost, and that the last commands before it were not seen', () => {
      const lost = (after: number) => ({ after, kind: 'data lost' }) as const;
      const elsewhere = made(asked('2'), ...begun, answered('2', '1')).map((record) => ({
        ...record,
        process: 'call' in record ? 'q' : 'p',
      }));
      expect(rulesIn([], did(taken(1), leased(1, 9_000), lost(2), taken(3, b)))).toEqual([]);
      expect(rulesIn(elsewhere, did(taken(0), lost(1)))).toEqual([]);
      expect(rulesIn(elsewhere, did(taken(0), released(1), lost(1)))).toEqual(['a real run']);
      expect(rulesIn([], did(taken(0), leased(1, 9_000), lost(1), stored(2)))).toEqual(['stored by the holder']);
    });

    it('finds a result that was forgotten before the question, whether or not forgetResult() was answered', () => {
      const late = made(...begun, asked('2', 9), answered('2', '1'));
      expect(rulesIn(late, did(taken(0), forgotten(1), stored(2)))).toEqual(['not forgotten']);
      expect(rulesIn(late, did(forgotten(0), taken(1), stored(2)))).toEqual([]);
      expect(rulesIn(late, did(taken(0), forgotten(3), stored(3)))).toEqual([]);
    });
  });

  it('regards every order as possible while a message is under way', () => {
    const forgetting: FlightEvent = { kind: 'forgetting', call: 'f', name: 'a' };
    const forgot: FlightEvent = { kind: 'forgot', call: 'f' };
    const run = [asked('1', 50), began('1')];
    const late = [asked('2', 50), answered('2', '1'), answered('1', '1')];
    expect(rulesOf(made(...run, forgetting, forgot, ...late))).toEqual(['not forgotten']);
    expect(rulesOf(made(...run, forgetting, asked('2', 50), forgot, answered('2', '1'), answered('1', '1')))).toEqual(
      [],
    );
    expect(rulesOf(made(asked('1', 50), forgetting, began('1'), forgot, ...late))).toEqual([]);
  });
});
