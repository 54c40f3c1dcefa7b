import { type HeldType, isTransferable, type TransferableType } from '../../../lib/backends/lock-backend.js';
import { type ContractWorld, LAPSING, SHORT } from '../support/contract-world.js';
import { LONG, type Owner } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

const UNUSUAL_NAMES = [
  'a b',
  'ünï©ode ☂',
  '{tag}:x',
  '{tag}:y',
  'a*',
  'a?',
  'a[b]',
  'a\\b',
  'a\nb',
  '__proto__',
  '%',
  '-1',
];

/** What only the owner of a lock may do with it. */
export function describeOwnership(world: ContractWorld, type: HeldType): void {
  it('is acquired by the first to ask, for the leaseTime of the request', async () => {
    const [ann] = world.owners(type, 1);
    await ann.take({ leaseTime: 5_000 });
    expect(await ann.remaining()).toBeWithin(1, 5_000);
  });

  it('is free for others once its owner released it', async () => {
    const [ann, bob] = world.owners(type, 2);
    await ann.take();
    expect(await ann.release()).toMatchObject({ released: true, resent: false });
    expect((await bob.inspect()).mode).toBe('free');
    await bob.take();
  });

  it('is renewed, not counted, when its owner acquires it again', async () => {
    const [ann, bob] = world.owners(type, 2);
    await ann.take({ leaseTime: 2_000 });
    await ann.take({ leaseTime: LONG });
    expect(await ann.remaining()).toBeGreaterThan(2_000);
    expect((await ann.inspect()).owners).toHaveLength(1);
    await ann.release();
    await bob.take();
  });

  it('keeps its longer lease when its owner acquires it again for less', async () => {
    const [ann, bob] = world.owners(type, 2);
    await ann.take({ leaseTime: LONG });
    await ann.take({ leaseTime: SHORT });
    expect(await ann.remaining()).toBeWithin(SHORT + 1, world.rounded(LONG));
    if (type !== 'read') await bob.meet();
  });

  it('is not released by anybody else', async () => {
    const [ann, stranger] = world.owners(type, 2);
    const colleague = world.owner(type, ann.key, ann.client);
    await ann.take();
    for (const other of [stranger, colleague]) {
      expect(await other.release()).toMatchObject({ released: false });
    }
    expect(await owners(ann)).toEqual([ann.owner]);
  });

  it('says so when there is nothing to release', async () => {
    const [ann] = world.owners(type, 1);
    expect(await ann.release()).toMatchObject({ released: false });
    await ann.take();
    expect(await ann.release()).toMatchObject({ released: true });
    expect(await ann.release()).toMatchObject({ released: false });
  });

  it('is renewed by its owner, to more or to less than it had', async () => {
    const [ann] = world.owners(type, 1);
    await ann.take({ leaseTime: 5_000 });
    expect(await ann.renew(LONG)).toBe(true);
    expect(await ann.remaining()).toBeWithin(5_001, LONG);
    expect(await ann.renew(5_000)).toBe(true);
    expect(await ann.remaining()).toBeWithin(1, 5_000);
  });

  it('is not renewed by anybody else', async () => {
    const [ann, stranger] = world.owners(type, 2);
    await ann.take({ leaseTime: 5_000 });
    expect(await stranger.renew(LONG)).toBe(false);
    expect(await ann.remaining()).toBeWithin(1, 5_000);
    await ann.release();
    expect(await ann.renew()).toBe(false);
    expect((await ann.inspect()).mode).toBe('free');
  });

  it('is free when its lease has ended', async () => {
    const [ann, bob] = world.owners(type, 2);
    await ann.take({ leaseTime: LAPSING });
    await world.lapse(ann);
    expect(await ann.renew()).toBe(false);
    expect(await ann.release()).toMatchObject({ released: false });
    await bob.take();
  });

  it('outlives its first lease when it was renewed', async () => {
    const [ann] = world.owners(type, 1);
    await ann.take({ leaseTime: SHORT });
    await ann.renew(LONG);
    await world.elapse(SHORT);
    expect(await ann.holds()).toBe(true);
  });

  it('is not touched by an owner whose lease has ended', async () => {
    const [ann, bob] = world.owners(type, 2);
    await ann.take({ leaseTime: LAPSING });
    await world.elapse(LAPSING);
    await bob.take({ leaseTime: 5_000 });
    expect(await ann.renew()).toBe(false);
    expect(await ann.release()).toMatchObject({ released: false });
    if (isTransferable(type)) expect(await ann.transferTo(world.owner(type, ann.key))).toBeUndefined();
    expect(await owners(bob)).toEqual([bob.owner]);
    expect(await bob.remaining()).toBeWithin(1, 5_000);
  });

  if (isTransferable(type)) describeTransfer(world, type);

  it('is released by force, whoever holds it', async () => {
    const [ann, bob] = world.owners(type, 2);
    expect(await bob.forceRelease()).toEqual([]);
    await ann.take();
    expect(await bob.forceRelease()).toEqual([ann.owner]);
    expect((await bob.inspect()).mode).toBe('free');
    expect(await ann.renew()).toBe(false);
    expect(await ann.release()).toMatchObject({ released: false });
    expect(await bob.forceRelease()).toEqual([]);
    await bob.take();
  });

  if (world.capabilities.joinsQuorums !== false) {
    it('is released quietly, without a message', async () => {
      const [ann, bob] = world.owners(type, 2);
      expect(await ann.releaseQuietly()).toMatchObject({ released: false });
      await ann.take();
      expect(await ann.releaseQuietly()).toEqual({ released: true, listeners: 0, published: false, resent: false });
      await bob.take();
    });
  }

  it('is separate from every other name, whatever characters a name has', async () => {
    const prefix = world.key();
    const owners = UNUSUAL_NAMES.map((name) => world.owner(type, `${prefix}${name}`));
    for (const owner of owners) await owner.take();
    for (const owner of owners) expect((await owner.inspect()).owners).toMatchObject([{ owner: owner.owner }]);
    for (const owner of owners) expect(await owner.release()).toMatchObject({ released: true });
  });
}

function describeTransfer(world: ContractWorld, type: TransferableType): void {
  it('is transferred from its owner to another one, with a fresh lease', async () => {
    const [ann] = world.owners(type, 1);
    const bob = world.owner(type, ann.key, ann.client);
    await ann.take({ leaseTime: 5_000 });
    expect(await ann.transferTo(bob, LONG)).toMatchObject({ acquired: true, reserved: 0 });
    expect(await owners(ann)).toEqual([bob.owner]);
    expect(await bob.remaining()).toBeGreaterThan(5_000);
    expect(await ann.release()).toMatchObject({ released: false });
    expect(await bob.release()).toMatchObject({ released: true });
  });

  it('is not transferred from somebody who does not hold it', async () => {
    const [ann, stranger, heir] = world.owners(type, 3);
    expect(await stranger.transferTo(heir)).toBeUndefined();
    expect((await heir.inspect()).mode).toBe('free');
    await ann.take();
    expect(await stranger.transferTo(heir)).toBeUndefined();
    expect(await owners(ann)).toEqual([ann.owner]);
  });

  it('stays with an owner that transfers it to itself', async () => {
    const [ann] = world.owners(type, 1);
    await ann.take({ leaseTime: 5_000 });
    expect(await ann.transferTo(ann, LONG)).toMatchObject({ acquired: true });
    expect(await owners(ann)).toEqual([ann.owner]);
    expect(await ann.remaining()).toBeGreaterThan(5_000);
  });

  it('is still held after a transfer that was sent twice', async () => {
    const [ann, bob] = world.owners(type, 2);
    await ann.take();
    const first = await ann.transferTo(bob);
    const again = await ann.transferTo(bob);
    expect(again!.token).toBeGreaterThan(first!.token);
    expect(await owners(bob)).toEqual([bob.owner]);
  });
}

async function owners(lock: Owner): Promise<string[]> {
  return (await lock.inspect()).owners.map(({ owner }) => owner);
}
