import { parseClientRecord } from '../../../lib/backends/directory/client-record.js';

const HOLD = { key: 'lock:order', type: 'reentrant', owner: 'ann:1', group: '', method: '', heldFor: 5 };
const RECORD = {
  clientId: 'ann',
  application: 'shop',
  host: 'web-1',
  pid: 7,
  version: '',
  since: 1_700_000_000_000,
  held: 1,
  waiting: 0,
  longestWait: 0,
  holds: [HOLD],
  waits: [],
};

describe('the record of a client', () => {
  it('is read back as it was written', () => {
    expect(parseClientRecord(RECORD)).toEqual(RECORD);
  });

  it('of another version may have other fields, types of locks that this one does not know, and lack what is not known', () => {
    const holds = [{ ...HOLD, type: 'single-flight', note: 1 }];
    expect(parseClientRecord({ clientId: 'ann', application: 'shop', holds, load: 7 } as never)).toMatchObject({
      version: '',
      waits: [],
      holds: [{ type: 'single-flight' }],
    });
  });

  it.each([
    {},
    [],
    { ...RECORD, clientId: '' },
    { ...RECORD, clientId: 'a:b' },
    { ...RECORD, clientId: ['ann'] },
    { ...RECORD, application: { toString: 1 } },
    { ...RECORD, host: null },
    { ...RECORD, pid: '7' },
    { ...RECORD, since: Number.NaN },
    { ...RECORD, held: -1 },
    { ...RECORD, longestWait: Number.POSITIVE_INFINITY },
    { ...RECORD, holds: null },
    { ...RECORD, waits: { length: 1 } },
  ])('is ignored if it is %j', (fields) => {
    expect(parseClientRecord(fields as never)).toBeUndefined();
  });

  it.each([null, 7, 'text', [], {}, { ...HOLD, key: 1 }, { ...HOLD, type: null }, { ...HOLD, heldFor: '5' }])(
    'is read without a hold that is %j',
    (hold) => {
      expect(parseClientRecord({ ...RECORD, holds: [hold, HOLD] })).toEqual(RECORD);
    },
  );
});
