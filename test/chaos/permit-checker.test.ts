import {
  forgetsRequests,
  grantsOneTooMany,
  leasesOneTooMany,
  opensEarly,
  renewsNothing,
  type SynchronizerBreakage,
  tellsNobody,
} from './broken-synchronizers.js';
import { History, type HistoryEvent } from './history.js';
import { checkHistory, type Expectations } from './history-checker.js';
import type { KindName } from './simulation/kinds.js';
import { simulate } from './simulation/run-schedules.js';

/** A history in which each step is a millisecond after the previous one. */
function history(...steps: [process: string, event: HistoryEvent][]): History {
  const made = new History();
  for (const [at, [process, event]] of steps.entries()) made.add(process, at + 1, event);
  return made;
}

const sent = (call: string, lock = 'pool', more = {}): HistoryEvent => ({
  kind: 'sent',
  call,
  locks: [lock],
  patient: true,
  ...more,
});
const granted = (call: string, more: Partial<HistoryEvent & { kind: 'granted' }> = {}): HistoryEvent => ({
  kind: 'granted',
  call,
  lock: 'pool',
  type: 'permits',
  owner: call,
  permits: 1,
  ...more,
});
const asked = (call: string): HistoryEvent => ({ kind: 'release-asked', call });
const answered = (call: string, outcome: 'released' | 'lost' = 'released'): HistoryEvent => ({
  kind: 'release-answered',
  call,
  outcome,
});
const latch = (step: 'set' | 'counting' | 'counted', count: number): HistoryEvent => ({
  kind: 'latch',
  lock: 'gate',
  step,
  count,
});
const left = (available: number): HistoryEvent => ({ kind: 'permits-left', lock: 'pool', available });
const one: Expectations = { permits: new Map([['pool', 1]]) };
const rulesBroken = (made: History, expectations: Expectations = one) =>
  checkHistory(made, expectations).violations.map(({ rule }) => rule);

describe('the history checker, of semaphores and latches', () => {
  it('counts permits of a dead process as taken if they are only counted, but not if they have a lease', () => {
    const steps = (validUntil?: number): History =>
      history(
        ['a', sent('a/1')],
        ['a', granted('a/1', { validUntil })],
        ['a', { kind: 'crashed' }],
        ['b', sent('b/1')],
        ['b', granted('b/1', { validUntil })],
      );
    expect(rulesBroken(steps())).toEqual(['no overlap']);
    expect(rulesBroken(steps(100))).toEqual([]);
  });

  it('finds permits that were lost, and permits that were created', () => {
    const steps = (available: number): History =>
      history(
        ['a', sent('a/1')],
        ['a', granted('a/1')],
        ['a', asked('a/1')],
        ['a', answered('a/1')],
        ['s', left(available)],
      );
    expect(rulesBroken(steps(1))).toEqual([]);
    expect(rulesBroken(steps(0))).toEqual(['permits conserved']);
    expect(rulesBroken(steps(2))).toEqual(['permits conserved']);
  });

  it('ignores permits that a process was about to get when it died, but not those that it had', () => {
    const inDoubt = (available: number) =>
      history(['a', sent('a/1')], ['a', { kind: 'crashed' }], ['s', left(available)]);
    expect(rulesBroken(inDoubt(0))).toEqual([]);
    expect(rulesBroken(inDoubt(1))).toEqual([]);
    const held = history(['a', sent('a/1')], ['a', granted('a/1')], ['a', { kind: 'crashed' }], ['s', left(1)]);
    expect(rulesBroken(held)).toEqual(['permits conserved']);
  });

  it('finds permits that were gone before their lease ended, and losses that were not reported', () => {
    const steps = (validUntil: number, kept: boolean) =>
      history(
        ['a', sent('a/1')],
        ['a', granted('a/1', { validUntil, kept })],
        ...Array.from({ length: 20 }, (): [string, HistoryEvent] => ['b', { kind: 'left', counts: {} }]),
        ['a', asked('a/1')],
        ['a', answered('a/1', 'lost')],
      );
    expect(rulesBroken(steps(100, true))).toEqual(['permits kept']);
    expect(rulesBroken(steps(10, true))).toEqual([]);
    expect(rulesBroken(steps(10, true), { ...one, reportedWithin: 5 })).toEqual(['permits kept']);
    expect(rulesBroken(steps(10, false), { ...one, reportedWithin: 5 })).toEqual([]);
  });

  it('finds callers that passed a latch too early, or found it closed too late', () => {
    const through = granted('b/1', { lock: 'gate', type: 'latch' });
    const refused: HistoryEvent = { kind: 'refused', call: 'b/1', error: 'LockBusyError', message: '' };
    const pass = (event: HistoryEvent, done: HistoryEvent[]): History =>
      history(
        ['a', latch('set', 2)],
        ['a', latch('counting', 1)],
        ...done.map((step): [string, HistoryEvent] => ['a', step]),
        ['b', sent('b/1', 'gate', { patient: false, once: true })],
        ['b', event],
      );
    const all = [latch('counting', 1), latch('counted', 1), latch('counted', 1)];
    expect(rulesBroken(pass(through, []))).toEqual(['latches open once']);
    expect(rulesBroken(pass(through, [latch('counting', 1)]))).toEqual([]);
    expect(rulesBroken(pass(refused, [latch('counting', 1), latch('counted', 1)]))).toEqual([]);
    expect(rulesBroken(pass(refused, all))).toEqual(['latches open once']);
  });

  it('finds a semaphore with enough permits, for which somebody waits', () => {
    const made = new History();
    const add = (at: number, event: HistoryEvent) => made.add('a', at, event);
    add(0, sent('a/1'));
    add(1, granted('a/1'));
    add(2, sent('a/2', 'pool', { permits: 2 }));
    add(90, asked('a/1'));
    add(91, answered('a/1'));
    add(99, granted('a/2', { permits: 2 }));
    const expect3 = { permits: new Map([['pool', 3]]), servedWithin: 50 };
    expect(rulesBroken(made, expect3)).toContain('served in time');
    expect(rulesBroken(made, { ...expect3, permits: new Map([['pool', 2]]) })).toEqual([]);
  });

  it('finds a permit for which somebody waits while others are granted', () => {
    const made = (last: number) => {
      const steps = new History();
      const add = (at: number, event: HistoryEvent) => steps.add('a', at, event);
      add(0, sent('a/1', 'pool', { permits: 2 }));
      add(1, granted('a/1', { permits: 2 }));
      for (const call of ['a/2', 'a/3']) add(2, sent(call));
      add(10, asked('a/1'));
      add(11, answered('a/1'));
      add(50, granted('a/2'));
      add(last, granted('a/3'));
      return steps;
    };
    const expected = { permits: new Map([['pool', 2]]), servedWithin: 60 };
    expect(rulesBroken(made(65), expected)).toEqual([]);
    expect(rulesBroken(made(100), expected)).toEqual(['served in time']);
  });
});

describe('the history checker, of semaphores and latches that are broken', () => {
  const BROKEN: [what: string, breakage: SynchronizerBreakage, kind: KindName, rules: string[]][] = [
    ['grant one permit too many', grantsOneTooMany, 'permits', ['no overlap', 'permits conserved']],
    ['lease one permit too many', leasesOneTooMany, 'permits', ['no overlap']],
    ['add permits twice', forgetsRequests, 'latePermitRequests', ['no overlap', 'permits conserved']],
    ['announce no release', tellsNobody, 'permits', ['served in time', 'every caller answered']],
    ['do not renew', renewsNothing, 'permits', ['no overlap', 'permits kept']],
    ['open a latch too early', opensEarly, 'permits', ['latches open once']],
  ];

  it.each(BROKEN)(
    'finds out that they %s',
    async (_what, disguiseSynchronizers, kind, rules) => {
      const found = new Set<string>();
      for (let seed = 1; seed <= 200; seed++) {
        const { verdict } = await simulate(seed, { kind, disguiseSynchronizers });
        for (const { rule } of verdict.violations) found.add(rule);
      }
      expect([...found]).toEqual(expect.arrayContaining(rules));
    },
    120_000,
  );
});
