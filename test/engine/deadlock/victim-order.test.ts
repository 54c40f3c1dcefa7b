import type { FoundWait, JournalRecord } from '../../../lib/engine/deadlock/journal-record.js';
import { isBefore } from '../../../lib/engine/deadlock/victim-order.js';

const wait = (id: string, record: Partial<JournalRecord>): Pick<FoundWait, 'id' | 'record'> => ({
  id,
  record: { lock: 'order', owner: 'm', holders: [], began: 5, beat: 1, ...record },
});

describe('of two waits', () => {
  it.each<[string, ReturnType<typeof wait>, ReturnType<typeof wait>]>([
    ['the one that began earlier', wait('z', { began: 4, owner: 'z' }), wait('a', { owner: 'a' })],
    ['one that is no branch', wait('z', { began: 9, owner: 'z' }), wait('a', { isBranch: true, owner: 'a' })],
    [
      'the branch that began earlier',
      wait('z', { began: 4, owner: 'z', isBranch: true }),
      wait('a', { isBranch: true, owner: 'a' }),
    ],
    ['the one with the smaller owner, if they began together', wait('z', { owner: 'a' }), wait('a', { owner: 'z' })],
    ['the one with the smaller id, if they also have one owner', wait('a', {}), wait('b', {})],
    [
      'the one that began earlier, if one says that it is no branch',
      wait('z', { isBranch: false, began: 4 }),
      wait('a', {}),
    ],
    ['the other one, if it began earlier', wait('z', { began: 4 }), wait('a', { isBranch: false })],
  ])('%s comes first', (_, first, last) => {
    expect(isBefore(first, last)).toBe(true);
    expect(isBefore(last, first)).toBe(false);
  });

  it('none comes first if they are the same', () => {
    expect(isBefore(wait('a', {}), wait('a', {}))).toBe(false);
  });
});
