import { LockConfigurationError, LockLostError } from '../../../lib/engine/errors.js';
import { openWorld, STORES } from '../../support/lock-world.js';

describe.each(STORES)('a forced release in %s that names owners', (store) => {
  const world = openWorld(store);

  it('leaves the lock to the one that got it since they were shown', async () => {
    const [ann, bob, eve] = await Promise.all([world.process(), world.process(), world.process()]);
    const first = await ann.locks.acquire('order');
    const waiting = bob.locks.acquire('order');
    const seen = await eve.locks.inspect('order');
    await first.release();
    const second = await waiting;
    const owners = seen.owners.map(({ owner }) => owner);
    expect(await eve.locks.forceRelease('order', { owners, fencingToken: seen.fencingToken })).toBe(false);
    expect((await eve.locks.inspect('order')).owners.map(({ owner }) => owner)).toEqual([second.owner]);
    expect(second.held).toBe(true);
    await second.release();
  });

  it('takes the lock from them, and their leases are lost', async () => {
    const [ann, eve] = await Promise.all([world.process(), world.process()]);
    const lease = await ann.locks.acquire('order', { type: 'fenced' });
    const { owners, fencingToken } = await ann.locks.inspect('order');
    const shown = { owners: owners.map(({ owner }) => owner), fencingToken };
    expect(await ann.locks.forceRelease('order', shown)).toBe(true);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(await eve.locks.isLocked('order')).toBe(false);
    expect(await eve.locks.forceRelease('order', shown)).toBe(false);
  });

  it('compares the token that a service shows of its own lock with those of fenced locks alone', async () => {
    const { locks } = await world.process();
    const lease = await locks.acquire('order');
    const { fencingToken } = await locks.inspect('order');
    expect(fencingToken).toBe(lease.fencingToken);
    expect(await locks.forceRelease('order', { owners: [lease.owner], fencingToken })).toBe(true);
  });

  it.each([
    [null, 'must be an object'],
    [{ owner: 'ann:1' }, "there is no option 'owner'"],
    [{ owners: 'ann:1' }, "owners is 'ann:1'; it must be a list of strings"],
    [{ owners: [{ owner: 'ann:1' }] }, 'owners is a list; it must be a list of strings'],
    [{ owners: ['ann:1'], fencingToken: '7' }, "fencingToken is '7'; it must be a whole number"],
    [{ fencingToken: 7 }, 'give both'],
  ])('releases nothing where the options are %j', async (options, why) => {
    const { locks } = await world.process();
    const lease = await locks.acquire('order');
    const refused = locks.forceRelease('order', options as never);
    await expect(refused).rejects.toThrow(LockConfigurationError);
    await expect(refused).rejects.toThrow(why);
    expect(lease.held).toBe(true);
    await lease.release();
  });
});
