import { longestLease, unreleasedOwner, unusedOwner } from '../../../lib/engine/ask/unused-owner.js';

describe('the owner of a lock that is no longer held', () => {
  const REF = { key: 'lock:order', type: 'reentrant', owner: 'ann:1' } as const;
  const held = (lateCopiesUntil?: number, validFor = 10_000) => ({
    ...REF,
    name: 'order',
    leaseTime: 10_000,
    validFor,
    lateCopiesUntil,
    wouldWait: false,
  });

  it('may hold it for the longest of the leases that it was given', () => {
    expect(longestLease({ leaseTime: 10_000, validFor: 60_000 })).toBe(60_000);
    expect(longestLease({ leaseTime: 10_000, validFor: 2_000 })).toBe(10_000);
    expect(unusedOwner(held(undefined, 60_000)).leaseTime).toBe(60_000);
  });

  it('is known by its key, type and id alone if no copy of its acquisition is under way', () => {
    expect(unusedOwner(held())).toEqual({ ...REF, leaseTime: 10_000 });
  });

  it.each([
    ['that would have waited', true],
    ['that would not', false],
  ])('%s may be a waiter if a copy of its acquisition is executed late: %s', (_, wouldWait) => {
    const owner = unusedOwner({ ...held(7_000), wouldWait });
    expect(owner).toEqual({ ...REF, leaseTime: 10_000, validUntil: 7_000, waits: wouldWait });
    expect(unusedOwner({ ...held(0), wouldWait })).toMatchObject({ validUntil: 0, waits: wouldWait });
  });

  it('has the name of its lock if its release got no answer, for the log', () => {
    expect(unreleasedOwner(held())).toEqual({ ...REF, leaseTime: 10_000, name: 'order' });
    expect(unreleasedOwner(held(7_000))).toMatchObject({ validUntil: 7_000, name: 'order' });
  });
});
