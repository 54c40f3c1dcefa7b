import { inspect } from 'node:util';
import { printedLease } from '../../../lib/engine/lease/printed-lease.js';
import { openVirtualWorld } from '../../support/lock-world.js';

describe('what logs show of a lease', () => {
  const world = openVirtualWorld();

  it('is its lock, and whether it is held', async () => {
    const { locks } = await world.process();
    const lease = await locks.acquire('order', { type: 'fair' });
    const { owner, fencingToken: token } = lease;
    expect(printedLease(lease)).toEqual({ name: 'order', owner, token, type: 'fair', held: true });
    expect(inspect(lease)).toContain("name: 'order'");
    await lease.release();
    expect(printedLease(lease)).toMatchObject({ held: false });
  });

  it('are all of its locks', async () => {
    const { locks } = await world.process();
    const lease = await locks.acquire(['order', 'stock']);
    const { owners, tokens } = lease;
    expect(printedLease(lease)).toEqual({
      names: ['order', 'stock'],
      owners: { order: owners.get('order'), stock: owners.get('stock') },
      tokens: { order: tokens.get('order'), stock: tokens.get('stock') },
      type: 'reentrant',
      held: true,
    });
    await lease.release();
  });
});
