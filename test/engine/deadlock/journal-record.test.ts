import { type JournalRecord, parseRecord } from '../../../lib/engine/deadlock/journal-record.js';

const RECORD: JournalRecord = { lock: 'order', owner: 'client:1', holders: ['client:2'], began: 1_000, beat: 3 };

describe('the journal’s entry for a wait', () => {
  it.each<[string, JournalRecord]>([
    ['with what every version writes', RECORD],
    ['with its end', { ...RECORD, ends: 5_000 }],
    ['of a branch', { ...RECORD, isBranch: true }],
    ['for nobody known', { ...RECORD, holders: [] }],
    ['for a lock that several hold', { ...RECORD, holders: [], shared: { holders: ['a', 'b'], permits: 1 } }],
    ['with what a later version adds', { ...RECORD, more: 1 } as JournalRecord],
  ])('is read: %s', (_, record) => {
    expect(parseRecord(JSON.stringify(record))).toEqual(record);
  });

  it.each([
    '',
    '{',
    'null',
    '5',
    '[]',
    ...[
      { lock: 5 },
      { lock: undefined },
      { owner: 5 },
      { owner: undefined },
      { holders: undefined },
      { holders: 'client:2' },
      { holders: ['client:2', 5] },
      { began: undefined },
      { began: '1000' },
      { beat: undefined },
      { beat: '3' },
      { ends: 'soon' },
      { shared: null },
      { shared: { permits: 1 } },
      { shared: { holders: [5], permits: 1 } },
      { shared: { holders: ['a'] } },
      { shared: { holders: ['a'], permits: 0 } },
      { shared: { holders: ['a'], permits: 1.5 } },
    ].map((damage) => JSON.stringify({ ...RECORD, ...damage })),
  ])('is ignored if it is damaged: %s', (text) => {
    expect(parseRecord(text)).toBeUndefined();
  });
});
