import { ticketOwner } from '../../../lib/backends/owner-ids.js';
import { describeHolder } from '../../../lib/engine/clients/describe-holder.js';

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
});
