import type { HeldType, Removal } from '../../../lib/backends/lock-backend.js';
import { until } from '../../support/until.js';
import { type ContractWorld, SHORT } from '../support/contract-world.js';
import { LONG, type Owner } from '../support/owner.js';

/** A forced release that names owners takes the lock from nobody else. */
export function describeForcedRelease(world: ContractWorld, type: HeldType): void {
  it('is released by force from an owner that was named', async () => {
    const [ann, bob] = world.owners(type, 2);
    await ann.take();
    expect(await bob.forceRelease({ owners: [bob.owner, ann.owner] })).toEqual([ann.owner]);
    expect((await bob.inspect()).mode).toBe('free');
    expect(await ann.renew()).toBe(false);
    expect(await bob.forceRelease({ owners: [ann.owner] })).toEqual([]);
    await bob.take();
  });

  it('stays with an owner that a forced release does not name', async () => {
    const [ann, bob] = world.owners(type, 2);
    await ann.take({ leaseTime: 5_000 });
    expect(await bob.forceRelease({ owners: [bob.owner, `${ann.owner}0`, ''] })).toEqual([]);
    expect(await bob.forceRelease({ owners: [] })).toEqual([]);
    expect(await ann.remaining()).toBeWithin(1, 5_000);
    expect(await ann.renew()).toBe(true);
  });

  it('stays with its owner when a forced release for its predecessor arrives', async () => {
    const [ann, bob, eve] = world.owners(type, 3);
    await ann.take();
    const { owners, token } = await eve.inspect();
    await ann.release();
    await bob.take();
    expect(await eve.forceRelease({ owners: owners.map(({ owner }) => owner), token })).toEqual([]);
    expect(await bob.holds()).toBe(true);
    expect(await bob.renew()).toBe(true);
  });

  it('stays with an owner that has acquired it again since, as its last token shows', async () => {
    const [ann, eve] = world.owners(type, 2);
    await ann.take();
    const { token } = await eve.inspect();
    if (token === undefined) return;
    await ann.release();
    await ann.take();
    expect(await eve.forceRelease({ owners: [ann.owner], token })).toEqual([]);
    expect(await ann.holds()).toBe(true);
    const seen = await eve.inspect();
    expect(await eve.forceRelease({ owners: [ann.owner], token: seen.token })).toEqual([ann.owner]);
  });

  if (world.capabilities.publishes !== false) {
    it('wakes waiters when it is released by force from the owner that was named', async () => {
      const [ann, bob, eve] = world.owners(type, 3);
      const listener = await world.listen(bob);
      await ann.take();
      if (type === 'fair') await bob.meet({ waiterTimeout: LONG });
      await eve.forceRelease({ owners: [ann.owner] });
      await listener.hears();
      await bob.take();
    });
  }
}

/** Readers that a forced release does not name continue to read. */
export function describeForcedReleaseOfReaders(world: ContractWorld): void {
  const lock = () => {
    const [rita, ron, rosa] = world.owners('read', 3);
    return { rita, ron, rosa, walt: world.owner('write', rita.key) };
  };

  it('is released by force only from the readers that were named', async () => {
    const { rita, ron, rosa, walt } = lock();
    for (const reader of [rita, ron, rosa]) await reader.take({ leaseTime: 5_000 });
    world.expectForced(await walt.forceRelease({ owners: [rita.owner, ron.owner] }), [rita.owner, ron.owner]);
    expect(await readers(rosa)).toEqual([rosa.owner]);
    for (const gone of [rita, ron]) expect(await gone.renew()).toBe(false);
    expect(await rosa.renew()).toBe(true);
    expect((await walt.meet()).holder).toBe(rosa.owner);
    await rosa.release();
    await walt.take();
  });

  it('lasts as long as the readers that are left when others were removed by force', async () => {
    const { rita, ron, walt } = lock();
    await rita.take({ leaseTime: SHORT });
    await ron.take({ leaseTime: LONG });
    await walt.forceRelease({ owners: [ron.owner] });
    await walt.takeInTime();
  });

  it('is released by force from a writer that was named, also where it reads', async () => {
    const { walt, rita } = lock();
    await walt.take();
    await walt.as('read').take();
    expect(await rita.forceRelease({ owners: [rita.owner] })).toEqual([]);
    world.expectForced(await rita.forceRelease({ owners: [walt.owner] }), [walt.owner]);
    expect((await rita.inspect()).mode).toBe('free');
    expect(await walt.as('read').renew()).toBe(false);
    await rita.take();
  });

  it('notifies each client whose readers were removed by force, but only about its own readers', async () => {
    const { rita, ron, walt } = lock();
    const heard = new Map<Owner, Removal[]>([
      [rita, []],
      [ron, []],
    ]);
    const subscriptions = [...heard].map(([{ client, key }, removals]) =>
      client.backend.listenToClient!(client.id, (removal) => removal.key === key && removals.push(removal)),
    );
    await Promise.all(subscriptions.map(({ ready }) => ready));
    await rita.take();
    await ron.take();
    await walt.forceRelease();
    await until(() => [...heard.values()].every((removals) => removals.length > 0));
    for (const [{ key, owner }, removals] of heard) expect(removals[0]).toEqual({ key, owners: [owner] });
    for (const subscription of subscriptions) subscription.close();
  });

  it('wakes nobody while a reader is left that was not removed', async () => {
    const { rita, ron, walt } = lock();
    await rita.take();
    await ron.take();
    const listener = await world.listen(walt);
    await rita.forceRelease({ owners: [rita.owner] });
    world.expectMessages(listener, 0);
    await ron.forceRelease({ owners: [ron.owner] });
    await listener.hears();
    await walt.take();
  });
}

async function readers(lock: Owner): Promise<string[]> {
  return (await lock.inspect()).owners.map(({ owner }) => owner);
}
