import { ticketOwner } from '../../lib/backends/owner-ids.js';
import {
  describeClient,
  describeHolder,
  holderIn,
  withoutRecord,
  withoutRecordBecause,
} from '../../lib/engine/describe-holder.js';

const CLIENT = { clientId: 'ann', application: 'shop', host: 'web-1', pid: 7, version: '', group: '', method: '' };

describe('the description of a holder', () => {
  it('is its owner id if nothing else is known', () => {
    expect(describeHolder('ann:1', undefined)).toBe('ann:1');
  });

  it('tells why its client is not known, if that is known', () => {
    expect(describeHolder('ann:1', undefined, 'a stranger')).toBe('a stranger (ann:1)');
  });

  it('names its client, its code and its time', () => {
    const lines = [
      {},
      { group: 'payments' },
      { group: 'payments', method: 'Orders.pay', heldFor: 31_000 },
      { heldFor: 119_400 },
      { heldFor: 180_000 },
      { heldFor: 10_800_000 },
    ].map((details) => describeHolder('ann:1', { ...CLIENT, ...details }, 'a stranger'));
    expect(lines).toEqual([
      'shop on web-1, pid 7 (ann:1)',
      'shop on web-1, pid 7, in payments (ann:1)',
      'shop on web-1, pid 7, in Orders.pay, for 31 s (ann:1)',
      'shop on web-1, pid 7, for 119 s (ann:1)',
      'shop on web-1, pid 7, for 3 min (ann:1)',
      'shop on web-1, pid 7, for 3 h (ann:1)',
    ]);
  });

  it('says that nobody holds a detached lock, and who detached it, if that is known', () => {
    const owner = ticketOwner('ann', 'secret');
    const lines = [describeHolder(owner, undefined), describeHolder(owner, CLIENT)];
    for (const line of lines) expect(line).toMatch(/^nobody.*detached/);
    expect(lines.map((line) => line.includes('shop'))).toEqual([false, true]);
    for (const line of lines) expect(line).not.toContain('undefined');
  });

  it('is that of an unknown owner if not even that is known', () => {
    expect(describeHolder(undefined, undefined)).toBe('an unknown owner');
    expect(describeHolder(undefined, CLIENT, 'a stranger')).toBe('an unknown owner');
  });

  it('gives the time in seconds up to two minutes, and in minutes up to two hours', () => {
    const times = [0, 499, 500, 119_499, 119_500, 149_000, 151_000, 7_199_000, 7_200_000, 9_000_000].map((heldFor) =>
      describeClient({ ...CLIENT, heldFor }).replace('shop on web-1, pid 7, for ', ''),
    );
    expect(times).toEqual(['0 s', '0 s', '1 s', '119 s', '2 min', '2 min', '3 min', '120 min', '2 h', '3 h']);
  });

  it('of a detached lock says why its client is not known', () => {
    const owner = ticketOwner('ann', 'secret');
    expect(describeHolder(owner, undefined)).toBe(`nobody: the lock was detached, and waits to be adopted (${owner})`);
    expect(describeHolder(owner, undefined, 'a stranger')).toBe(
      `nobody: the lock was detached by a stranger, and waits to be adopted (${owner})`,
    );
  });

  it('without a record is that of a Redisson client if the owner id is one of Redisson', () => {
    const redisson = '00000000-0000-4000-8000-000000000000:17';
    const ours = '00000000-0000-811e-8000-000000000000:17';
    expect([withoutRecord(redisson), withoutRecord(ours)]).toEqual(['a Redisson client', 'a client without a record']);
    expect(withoutRecordBecause(redisson)).toBe('a Redisson client');
    expect(withoutRecordBecause(ours)).toMatch(/^a client without a record: its process has ended/);
  });

  it('comes from the record of its client, as far as that mentions the lock', () => {
    const { group: _, method: __, ...client } = CLIENT;
    const hold = { key: 'lock:order', type: 'reentrant', group: 'payments', method: 'Orders.pay', heldFor: 0 } as const;
    const record = {
      ...client,
      since: 0,
      held: 2,
      waiting: 0,
      longestWait: 0,
      holds: [
        { ...hold, owner: 'ann:1', group: '' },
        { ...hold, owner: 'ann:2' },
      ],
      waits: [],
    };
    expect(holderIn(record, 'ann:2')).toEqual({ ...client, group: 'payments', method: 'Orders.pay', heldFor: 0 });
    expect(holderIn(record, 'ann:3')).toEqual({ ...client, group: '', method: '' });
    expect(holderIn(record, 'ann:3')).not.toHaveProperty('heldFor');
  });
});
