import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  acceptsUsedTickets,
  admitsOneMore,
  type Breakage,
  freesDetachedLocks,
  grantsTwice,
  ignoresOwner,
  keepsOwnersOfDetachedLocks,
  keepsWhatIsReleased,
  losesWakeUps,
  releasesEveryPlace,
  renewsNoLease,
  repeatsTokens,
  reservesWithoutLimit,
} from './broken-backends.js';
import { History, type HistoryEvent, HistoryFile } from './history.js';
import { checkHistory } from './history-checker.js';
import type { KindName } from './simulation/kinds.js';
import { simulate } from './simulation/run-schedules.js';

/** A history in which each step is a millisecond after the previous one. */
function history(...steps: [process: string, event: HistoryEvent][]): History {
  const made = new History();
  for (const [at, [process, event]] of steps.entries()) made.add(process, at + 1, event);
  return made;
}

const sent = (call: string, locks = ['order'], patient = true): HistoryEvent => ({
  kind: 'sent',
  call,
  locks,
  patient,
});
const granted = (
  call: string,
  token: number,
  more: Partial<HistoryEvent & { kind: 'granted' }> = {},
): HistoryEvent => ({
  kind: 'granted',
  call,
  lock: 'order',
  type: 'reentrant',
  owner: call,
  token,
  validUntil: 1_000,
  ...more,
});
const asked = (call: string): HistoryEvent => ({ kind: 'release-asked', call });
const answered = (call: string, outcome: 'released' | 'lost' | 'kept' = 'released'): HistoryEvent => ({
  kind: 'release-answered',
  call,
  outcome,
});
const rulesBroken = (made: History, expectations = {}) =>
  checkHistory(made, expectations).violations.map(({ rule }) => rule);

describe('the history checker', () => {
  it('accepts leases that follow each other', () => {
    const made = history(
      ['a', sent('a/1')],
      ['a', granted('a/1', 5)],
      ['b', sent('b/1')],
      ['a', asked('a/1')],
      ['b', granted('b/1', 6)],
      ['a', answered('a/1')],
      ['b', asked('b/1')],
      ['b', answered('b/1')],
      ['b', { kind: 'left', counts: { timers: 0 } }],
    );
    expect(checkHistory(made)).toEqual({ sound: true, violations: [], explanation: '' });
  });

  it('finds two valid leases, and shows what happened before', () => {
    const made = history(
      ['a', sent('a/1')],
      ['a', granted('a/1', 5)],
      ['b', sent('b/1')],
      ['b', granted('b/1', 6)],
      ['a', asked('a/1')],
      ['a', answered('a/1')],
      ['b', asked('b/1')],
      ['b', answered('b/1')],
    );
    const { sound, explanation } = checkHistory(made);
    expect(sound).toBe(false);
    expect(explanation).toMatch(/^no overlap\norder: two leases are valid at once: a\/1 .* when b\/1 .* was granted/);
    expect(explanation).toMatch(/> .*a +granted .*token 5/);
    expect(explanation).toMatch(/> .*b +granted .*token 6/);
  });

  it.each<[string, HistoryEvent]>([
    ['its release was asked for', asked('a/1')],
    ['its loss was noticed', { kind: 'lost', call: 'a/1', lock: 'order', reason: '' }],
    ['its process is dead', { kind: 'crashed' }],
    ['its backend lost the data', { kind: 'upset', until: 2, reason: '' }],
  ])('counts a lease no longer when %s', (_when, event) => {
    const made = history(
      ['a', sent('a/1')],
      ['a', granted('a/1', 5)],
      ['a', event],
      ['b', sent('b/1')],
      ['b', granted('b/1', 6)],
    );
    expect(rulesBroken(made)).not.toContain('no overlap');
  });

  it('counts a lease until its deadline, or until the new one if it was renewed', () => {
    const steps = (renewals: [string, HistoryEvent][]) =>
      history(
        ['a', sent('a/1')],
        ['a', granted('a/1', 5, { validUntil: 4 })],
        ...renewals,
        ['b', sent('b/1')],
        ['b', sent('b/2')],
        ['b', granted('b/1', 6)],
      );
    expect(rulesBroken(steps([]))).not.toContain('no overlap');
    expect(rulesBroken(steps([['a', { kind: 'confirmed', call: 'a/1', validUntil: 50 }]]))).toContain('no overlap');
  });

  it('lets readers share, and nobody write beside them', () => {
    const made = (type: 'read' | 'write') =>
      history(
        ['a', sent('a/1')],
        ['a', granted('a/1', 5, { type: 'read' })],
        ['b', sent('b/1')],
        ['b', granted('b/1', 6, { type })],
      );
    expect(rulesBroken(made('read'))).not.toContain('no overlap');
    expect(rulesBroken(made('write'))).toContain('no overlap');
  });

  it('lets shares of one lease overlap with the shares around them, but not with each other', () => {
    const share = (call: string, within?: string) => granted(call, 5, { owner: 'a:1', within });
    const steps: [string, HistoryEvent][] = [
      ['a', sent('a/1')],
      ['a', share('a/1')],
      ['a', sent('a/2')],
      ['a', share('a/2', 'a/1')],
    ];
    expect(rulesBroken(history(...steps))).not.toContain('no overlap');
    expect(rulesBroken(history(...steps, ['a', sent('a/3')], ['a', share('a/3', 'a/2')]))).not.toContain('no overlap');
    expect(rulesBroken(history(...steps, ['a', sent('a/3')], ['a', share('a/3', 'a/1')]))).toContain('no overlap');
  });

  it('finds a share of a lease that had already ended by the clock', () => {
    const made = (validUntil: number, owner: string, token: number) =>
      history(
        ['a', sent('a/1')],
        ['a', granted('a/1', 5, { owner: 'a:1' })],
        ['a', sent('a/2')],
        ['a', granted('a/2', token, { owner, within: 'a/1', validUntil })],
      );
    expect(rulesBroken(made(1_000, 'a:1', 5))).not.toContain('no overlap');
    expect(rulesBroken(made(0, 'a:1', 5))).toContain('no overlap');
    // When the lock is lost, the flow acquires it anew. Its answer may be late, but that lease is nobody else's share.
    expect(rulesBroken(made(0, 'a:2', 6))).not.toContain('no overlap');
  });

  it('finds a holder that noticed its loss too late, whatever ended the history', () => {
    const made = (toldAt: number, closingAt: number) => {
      const steps = history(['a', sent('a/1')], ['a', granted('a/1', 5, { validUntil: 10 })]);
      const later: [number, HistoryEvent][] = [
        [toldAt, { kind: 'lost', call: 'a/1', lock: 'order', reason: '' }],
        [closingAt, { kind: 'closing' }],
      ];
      for (const [at, event] of later.sort(([one], [other]) => one - other)) steps.add('a', at, event);
      return rulesBroken(steps, { lossesReportedWithin: 6 });
    };
    expect(made(12, 100)).not.toContain('losses reported');
    expect(made(50, 100)).toContain('losses reported');
    expect(made(50, 15)).not.toContain('losses reported'); // leases expire on shutdown
  });

  it('counts permits', () => {
    const made = history(
      ['a', sent('a/1')],
      ['a', granted('a/1', 0, { type: 'permits', permits: 2, token: undefined })],
      ['b', sent('b/1')],
      ['b', granted('b/1', 0, { type: 'permits', permits: 1, token: undefined })],
    );
    expect(rulesBroken(made, { permits: new Map([['order', 3]]) })).not.toContain('no overlap');
    expect(rulesBroken(made, { permits: new Map([['order', 2]]) })).toContain('no overlap');
  });

  describe('of a lock that n may hold', () => {
    const sentBy = (call: string, mostHolders: number) => ({ ...sent(call), mostHolders }) as HistoryEvent;
    const holders = (...calls: [call: string, mostHolders: number, token?: number][]) =>
      history(
        ...calls.map(([call, most]): [string, HistoryEvent] => ['a', sentBy(call, most)]),
        ...calls.map(([call, , token], n): [string, HistoryEvent] => [
          'a',
          granted(call, token ?? n, { type: 'place' }),
        ]),
      );

    it('finds more than n, of whom each has a lease', () => {
      expect(rulesBroken(holders(['a/1', 2], ['a/2', 2]))).toEqual([]);
      expect(rulesBroken(holders(['a/1', 2], ['a/2', 2], ['a/3', 2]))).toEqual(['no overlap']);
      const made = holders(['a/1', 2], ['a/2', 2], ['a/3', 2]);
      expect(checkHistory(made).explanation).toContain('more than 2 hold it at once');
    });

    it('lets callers with a larger number go past others, and not the reverse', () => {
      expect(rulesBroken(holders(['a/1', 1], ['a/2', 3], ['a/3', 3]))).toEqual([]);
      // It was granted first, but its record was written last.
      expect(rulesBroken(holders(['a/2', 3], ['a/3', 3], ['a/1', 1]))).toEqual([]);
      expect(rulesBroken(holders(['a/1', 1], ['a/2', 1], ['a/3', 3]))).toContain('no overlap');
    });

    it('finds a holder of another type beside them', () => {
      const made = holders(['a/1', 3]);
      made.add('b', 3, sent('b/1'));
      made.add('b', 4, granted('b/1', 9));
      expect(rulesBroken(made)).toEqual(['no overlap']);
    });

    it('counts a re-entry as the lease that it shares', () => {
      const made = holders(['a/1', 2], ['a/2', 2]);
      made.add('a', 5, sentBy('a/3', 2));
      made.add('a', 6, granted('a/3', 0, { type: 'place', owner: 'a/1', within: 'a/1' }));
      expect(rulesBroken(made)).toEqual([]);
    });

    it('finds a token that two of them have', () => {
      expect(rulesBroken(holders(['a/1', 2, 7], ['a/2', 2, 6]))).toEqual([]);
      expect(rulesBroken(holders(['a/1', 2, 7], ['a/2', 2, 7]))).toEqual(['growing tokens']);
    });
  });

  it('finds a token that does not grow, even after the data was lost', () => {
    const made = (token: number) =>
      history(
        ['a', sent('a/1')],
        ['a', granted('a/1', 5)],
        ['s', { kind: 'upset', until: 4, reason: '' }],
        ['b', sent('b/1')],
        ['b', sent('b/2')],
        ['b', granted('b/1', token)],
      );
    expect(rulesBroken(made(6))).not.toContain('growing tokens');
    expect(rulesBroken(made(5))).toContain('growing tokens');
    expect(rulesBroken(made(4))).toContain('growing tokens');
  });

  it('allows a token to be lower by the lead of the clocks if two masters served, and finds one that is even lower', () => {
    const made = (token: number) =>
      history(['a', sent('a/1')], ['a', granted('a/1', 200_000)], ['b', sent('b/1')], ['b', granted('b/1', token)]);
    const clockLead = 150_000;
    expect(rulesBroken(made(50_001), { clockLead })).not.toContain('growing tokens');
    expect(rulesBroken(made(50_000), { clockLead })).toContain('growing tokens');
    expect(rulesBroken(made(50_001))).toContain('growing tokens');
  });

  it('finds a token that was given before the data was lost, even while older grants prove nothing', () => {
    const made = (token: number, forgetsTokens: boolean) =>
      history(
        ['a', sent('a/1')],
        ['a', granted('a/1', 5)],
        ['s', { kind: 'upset', until: 100, reason: '', forgetsTokens }],
        ['b', sent('b/1')],
        ['b', granted('b/1', token)],
      );
    expect(rulesBroken(made(6, false))).not.toContain('growing tokens');
    expect(rulesBroken(made(5, false))).toContain('growing tokens');
    expect(rulesBroken(made(5, true))).not.toContain('growing tokens');
  });

  it('allows a lower token if the lease had ended before its process, which stood still, could record the grant', () => {
    const made = (validUntil: number) =>
      history(
        ['a', sent('a/1')],
        ['b', sent('b/1')],
        ['b', granted('b/1', 6)],
        ['b', { kind: 'release-asked', call: 'b/1' }],
        ['a', granted('a/1', 5, { validUntil })],
      );
    expect(rulesBroken(made(0))).not.toContain('growing tokens');
    expect(rulesBroken(made(1_000))).toContain('growing tokens');
  });

  it('lets earlier holders hand off their reserved tokens after a loss', () => {
    const made = history(
      ['a', sent('a/1')],
      ['a', granted('a/1', 5)],
      ['s', { kind: 'upset', until: 100, reason: '' }],
      ['b', sent('b/1')],
      ['b', granted('b/1', 150)],
      ['a', sent('a/2')],
      ['a', granted('a/2', 6)],
    );
    expect(rulesBroken(made)).not.toContain('growing tokens');
  });

  it('finds a caller without an answer, one without a reason, and one that would have waited', () => {
    const refused = (error: string): HistoryEvent => ({ kind: 'refused', call: 'a/1', error, message: '' });
    const rule = 'every caller answered';
    expect(rulesBroken(history(['a', sent('a/1')]))).toContain(rule);
    expect(rulesBroken(history(['a', sent('a/1', ['order'], false)], ['a', refused('TypeError')]))).toContain(rule);
    expect(rulesBroken(history(['a', sent('a/1')], ['a', refused('LockBusyError')]))).toContain(rule);
    expect(rulesBroken(history(['a', sent('a/1', ['order'], false)], ['a', refused('LockBusyError')]))).toEqual([]);
    expect(
      rulesBroken(history(['a', sent('a/1')], ['a', { kind: 'closing' }], ['a', refused('LockAbortedError')])),
    ).toEqual([]);
    expect(rulesBroken(history(['a', sent('a/1')], ['a', { kind: 'crashed' }]))).toEqual([]);
  });

  it('finds a release that did not say that the lease was lost', () => {
    const made = (outcome: 'released' | 'lost') =>
      history(
        ['a', sent('a/1')],
        ['a', granted('a/1', 5)],
        ['a', { kind: 'lost', call: 'a/1', lock: 'order', reason: '' }],
        ['a', asked('a/1')],
        ['a', answered('a/1', outcome)],
      );
    expect(rulesBroken(made('lost'))).toEqual([]);
    expect(rulesBroken(made('released'))).toEqual(['losses reported']);
  });

  it('finds an owner id that was used again', () => {
    const made = history(
      ['a', sent('a/1')],
      ['a', granted('a/1', 5)],
      ['a', asked('a/1')],
      ['a', answered('a/1')],
      ['a', { kind: 'reused', lock: 'order', owner: 'a/1' }],
    );
    expect(rulesBroken(made)).toEqual(['owners spent once']);
  });

  describe('of a lock that is detached', () => {
    const ticket = 'a/1 ticket';
    const detached = granted(ticket, 6, { token: undefined, detached: true, validUntil: 20 });
    const handedOver: [string, HistoryEvent][] = [
      ['a', sent('a/1')],
      ['a', granted('a/1', 5)],
      ['a', asked('a/1')],
      ['a', answered('a/1')],
      ['ticket', sent(ticket, ['order'], false)],
      ['ticket', detached],
    ];
    const adopting = (call: string): [string, HistoryEvent][] => [
      ['b', { kind: 'adopting', call: ticket }],
      ['b', { kind: 'sent', call, locks: ['order'], patient: false, ticket }],
    ];
    const adopted = (call: string, token: number): [string, HistoryEvent][] => [
      ['b', granted(call, token)],
      ['b', asked(call)],
      ['b', answered(call)],
    ];
    const refused = (call: string): [string, HistoryEvent] => [
      'b',
      { kind: 'refused', call, error: 'LockNotOwnedError', message: '' },
    ];

    it('regards it as held until it is adopted, or its time is over', () => {
      const other: [string, HistoryEvent][] = [
        ['c', sent('c/1')],
        ['c', granted('c/1', 9)],
      ];
      expect(rulesBroken(history(...handedOver, ...other))).toEqual(['no overlap']);
      expect(rulesBroken(history(...handedOver, ...adopting('b/1'), ...adopted('b/1', 7), ...other))).toEqual([]);
      const late = Array.from({ length: 20 }, (): [string, HistoryEvent] => ['d', { kind: 'left', counts: {} }]);
      expect(rulesBroken(history(...handedOver, ...late, ...other))).toEqual([]);
    });

    it('finds one that was refused, unless its process shuts down and has not lost it', () => {
      const closing: [string, HistoryEvent] = ['a', { kind: 'closing' }];
      const lost: [string, HistoryEvent] = ['a', { kind: 'lost', call: 'a/1', lock: 'order', reason: '' }];
      const kept = (...before: [string, HistoryEvent][]) =>
        rulesBroken(
          history(
            ['a', sent('a/1')],
            ['a', granted('a/1', 5)],
            ...before,
            ['a', asked('a/1')],
            ['a', answered('a/1', 'kept')],
          ),
        );
      expect(kept(closing)).toEqual([]);
      expect(kept()).toEqual(['losses reported']);
      expect(kept(closing, lost)).toEqual(['losses reported']);
    });

    it('finds a ticket that was used twice, and one that was refused in time', () => {
      const first = [...handedOver, ...adopting('b/1')];
      expect(rulesBroken(history(...first, ...adopted('b/1', 7), ...adopting('b/2'), refused('b/2')))).toEqual([]);
      expect(rulesBroken(history(...first, ...adopted('b/1', 7), ...adopting('b/2'), ...adopted('b/2', 8)))).toEqual([
        'tickets used once',
      ]);
      expect(rulesBroken(history(...first, refused('b/1')), { adoptedWithin: 5 })).toEqual(['tickets used once']);
      expect(rulesBroken(history(...first, refused('b/1')), { adoptedWithin: 15 })).toEqual([]);
    });
  });

  it('finds leftovers', () => {
    const { explanation } = checkHistory(history(['a', { kind: 'left', counts: { timers: 0, subscriptions: 2 } }]));
    expect(explanation).toContain('a has left 2 subscriptions');
  });

  it('finds a lock that is free while somebody waits', () => {
    const made = new History();
    const add = (at: number, event: HistoryEvent) => made.add('a', at, event);
    add(0, sent('a/1'));
    add(1, granted('a/1', 5));
    add(2, sent('a/2'));
    add(3, asked('a/1'));
    add(4, answered('a/1'));
    add(90, granted('a/2', 6));
    add(91, asked('a/2'));
    add(92, answered('a/2'));
    expect(rulesBroken(made, { servedWithin: 100 })).toEqual([]);
    expect(rulesBroken(made, { servedWithin: 50 })).toEqual(['served in time']);
    expect(rulesBroken(made, { servedWithin: 50, servedSince: 60 })).toEqual([]);
  });

  it('finds a caller that waits beside a newer one, where only the newest waits, and one that gave way to nobody', () => {
    const made = (at: number, superseded: string) => {
      const history = new History();
      const newest = (call: string): HistoryEvent => ({
        kind: 'sent',
        call,
        locks: ['order'],
        patient: true,
        newest: true,
      });
      history.add('a', 0, newest('a/1'));
      history.add('a', 100, newest('a/2'));
      history.add('a', at, { kind: 'refused', call: superseded, error: 'LockSupersededError', message: '' });
      history.add('a', at, granted(superseded === 'a/1' ? 'a/2' : 'a/1', 5));
      return rulesBroken(history, { servedWithin: 50, servedSince: 1 }).filter((rule) => rule === 'newest waits');
    };
    expect(made(150, 'a/1')).toEqual([]);
    expect(made(151, 'a/1')).toEqual(['newest waits']);
    expect(made(150, 'a/2')).toEqual(['newest waits']);
  });

  it('finds a caller with a time limit that was answered too late, unless its process stood still', () => {
    const made = (at: number, ...more: HistoryEvent[]) => {
      const history = new History();
      history.add('a', 0, { kind: 'sent', call: 'a/1', locks: ['order'], patient: false, waitTime: 100 });
      for (const event of more) history.add('a', 90, event);
      history.add('a', at, { kind: 'refused', call: 'a/1', error: 'LockBusyError', message: '' });
      return history;
    };
    expect(rulesBroken(made(150), { answeredWithin: 50 })).toEqual([]);
    expect(rulesBroken(made(151), { answeredWithin: 50 })).toEqual(['answered in time']);
    expect(rulesBroken(made(551))).toEqual([]);
    expect(rulesBroken(made(550, { kind: 'stalled', until: 500 }), { answeredWithin: 50 })).toEqual([]);
  });

  it('finds a caller of several locks that was passed over for long', () => {
    const made = (later: number) => {
      const history = new History();
      const add = (at: number, event: HistoryEvent) => history.add('a', at, event);
      add(0, sent('a/1', ['order', 'stock']));
      for (let i = 2; i < later + 2; i++) {
        add(10 * i, sent(`a/${i}`));
        add(10 * i + 1, granted(`a/${i}`, i));
        add(10 * i + 2, asked(`a/${i}`));
        add(10 * i + 3, answered(`a/${i}`));
      }
      add(500, granted('a/1', 100));
      add(500, granted('a/1', 101, { lock: 'stock' }));
      add(501, asked('a/1'));
      add(502, answered('a/1'));
      return history;
    };
    expect(rulesBroken(made(30), { severalWithin: 499 })).toEqual(['not passed over']);
    expect(rulesBroken(made(30), { severalWithin: 500 })).toEqual([]);
    expect(rulesBroken(made(10), { severalWithin: 499 })).toEqual([]);
  });

  it('merges the logs of several processes, also of one that was killed while it wrote', () => {
    const folder = mkdtempSync(join(tmpdir(), 'history-'));
    try {
      const [a, b] = ['a', 'b'].map((process) => join(folder, process));
      new HistoryFile(a).add('a', 1, sent('a/1'));
      new HistoryFile(b).add('b', 2, sent('b/1'));
      new HistoryFile(a).add('a', 3, granted('a/1', 5));
      appendFileSync(b, '{"at":4,"proc');
      expect(History.read(a, b).records.map(({ at, process }) => `${process}${at}`)).toEqual(['a1', 'b2', 'a3']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('the history checker, of a backend that is broken', () => {
  const BROKEN: [what: string, breakage: Breakage, kind: KindName, rules: string[]][] = [
    ['grants a lock twice', grantsTwice, 'steady', ['no overlap']],
    ['ignores the owner of a release', ignoresOwner, 'lossy', ['no overlap']],
    ['repeats tokens', repeatsTokens, 'steady', ['growing tokens']],
    ['reserves tokens without a limit', reservesWithoutLimit, 'flushed', ['growing tokens']],
    ['loses wake-ups', losesWakeUps, 'steady', ['every caller answered', 'served in time']],
    ['keeps what was released', keepsWhatIsReleased, 'steady', ['served in time']],
    ['frees a lock that is detached', freesDetachedLocks, 'tickets', ['no overlap', 'tickets used once']],
    ['accepts a ticket that was used', acceptsUsedTickets, 'tickets', ['no overlap', 'tickets used once']],
    ['lets late renewals count after detach()', keepsOwnersOfDetachedLocks, 'stormyTickets', ['no overlap']],
    ['admits one more than n', admitsOneMore, 'places', ['no overlap']],
    ['renews no lease of n', renewsNoLease, 'stormyPlaces', ['no overlap']],
    ['frees every place of n when one is released', releasesEveryPlace, 'places', ['no overlap']],
    ['repeats tokens of n', repeatsTokens, 'places', ['growing tokens']],
    ['keeps places that were released', keepsWhatIsReleased, 'places', ['served in time']],
  ];

  it.each(BROKEN)(
    'finds out that it %s',
    async (_what, disguise, kind, rules) => {
      const found = new Set<string>();
      for (let seed = 1; seed <= 60; seed++) {
        const { verdict } = await simulate(seed, { kind, disguise });
        for (const { rule } of verdict.violations) found.add(rule);
      }
      expect([...found]).toEqual(expect.arrayContaining(rules));
    },
    120_000,
  );

  it.each([...new Set(BROKEN.map(([, , kind]) => kind))])(
    'finds no violation in the unbroken one: %s',
    async (kind) => {
      for (let seed = 1; seed <= 60; seed++) {
        const { verdict } = await simulate(seed, { kind });
        expect(verdict.explanation).toBe('');
      }
    },
    120_000,
  );
});
