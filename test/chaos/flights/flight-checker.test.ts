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
const began = (run: string): FlightEvent => ({ kind: 'began', run, name: 'a' });
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
