import { type AdoptReply, type HeldType, isDetachable } from '../../../lib/backends/lock-backend.js';
import { ticketOwner } from '../../../lib/backends/owner-ids.js';
import { type ContractWorld, LAPSING } from '../support/contract-world.js';
import { LONG, Owner } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

const SECRET = '0123456789abcdef0123456789abcdef';

/** How a lock passes from one process to another by a ticket. */
export function describeAdoption(world: ContractWorld, type: HeldType): void {
  if (!isDetachable(type)) return;
  if (world.capabilities.adopts === false) {
    it('cannot be adopted, and the backend says why', () => {
      const { adopt, adoptRefusal } = world.clients[0].backend;
      expect(adopt).toBeUndefined();
      expect(adoptRefusal).toMatch(/\w/);
    });
    return;
  }

  /** Ann's lock, which she transfers to the owner of a ticket for `leaseTime`. */
  const detached = async (leaseTime = LONG) => {
    const [ann, bob, eve] = world.owners(type, 3);
    const ticket = new Owner(ann.client, ann.key, type, ticketOwner(ann.client.id, SECRET));
    const first = await ann.take();
    const second = await ann.transferTo(ticket, leaseTime);
    return { ann, bob, eve, ticket, tokens: [first.token, second!.token] };
  };

  const adopt = ({ client, key, owner: to }: Owner, from: Owner, leaseTime = LONG, secret = SECRET) =>
    client.backend.adopt!({ key, type, clientId: from.client.id, secret, to, leaseTime });

  const tokenOf = (reply: AdoptReply): number => (reply.acquired ? reply.token : Number.NaN);

  it('is adopted with the secret of its ticket, for the leaseTime of the adopter', async () => {
    const { ann, bob, ticket, tokens } = await detached();
    expect(await ticket.holds()).toBe(true);
    tokens.push(tokenOf(await adopt(bob, ann, 5_000)));
    expect(tokens).toStrictlyGrow();
    expect((await bob.inspect()).owners).toEqual([{ owner: bob.owner, remaining: expect.any(Number) }]);
    expect(await bob.remaining()).toBeWithin(1, 5_000);
    expect(await bob.release()).toMatchObject({ released: true });
    expect((await bob.inspect()).mode).toBe('free');
  });

  it('is not adopted with another secret, or with the owner id of the ticket', async () => {
    const { ann, bob, ticket } = await detached();
    for (const secret of ['f'.repeat(32), ticket.owner, ticket.owner.split(':t-')[1], ''])
      expect(await adopt(bob, ann, LONG, secret)).toEqual({ acquired: false, holder: ticket.owner });
    expect(await ticket.holds()).toBe(true);
  });

  it('is adopted once', async () => {
    const { ann, bob, eve } = await detached();
    expect(await adopt(bob, ann)).toMatchObject({ acquired: true });
    expect(await adopt(eve, ann)).toEqual({ acquired: false, holder: bob.owner });
    await bob.release();
    expect(await adopt(eve, ann)).toEqual({ acquired: false, holder: undefined });
  });

  it('is adopted once by many at the same time', async () => {
    const { ann, ticket } = await detached();
    const adopters = Array.from({ length: 12 }, (_, n) => world.owner(type, ann.key, world.clients[n % 3]));
    const replies = await Promise.all(adopters.map((adopter) => adopt(adopter, ticket)));
    expect(replies.filter(({ acquired }) => acquired)).toHaveLength(1);
    expect((await ann.inspect()).owners.map(({ owner }) => owner)).toEqual([
      adopters[replies.findIndex(({ acquired }) => acquired)].owner,
    ]);
  });

  it('is adopted once by a request that arrives twice, and keeps the longer lease and a growing token', async () => {
    const { ann, bob, tokens } = await detached();
    tokens.push(tokenOf(await adopt(bob, ann, 5_000)));
    await bob.renew(LONG);
    tokens.push(tokenOf(await adopt(bob, ann, 5_000)));
    expect(tokens).toStrictlyGrow();
    expect(await bob.remaining()).toBeWithin(5_001, LONG);
    await bob.renew(5_000);
    await adopt(bob, ann, LONG);
    expect(await bob.remaining()).toBeWithin(5_001, LONG);
    await bob.release();
    expect(await adopt(bob, ann)).toEqual({ acquired: false, holder: undefined });
  });

  it('is free when nobody has adopted it in time', async () => {
    const { ann, bob, eve } = await detached(LAPSING);
    await world.elapse(LAPSING);
    expect(await adopt(bob, ann)).toEqual({ acquired: false, holder: undefined });
    await eve.take();
    expect(await adopt(bob, ann)).toEqual({ acquired: false, holder: eve.owner });
  });

  it('is not affected by late commands of its former owners', async () => {
    const { ann, bob, ticket } = await detached();
    const still = async (owner: Owner, former: Owner) => {
      expect(await former.renew(100)).toBe(false);
      expect(await former.release()).toMatchObject({ released: false });
      expect(await owner.remaining()).toBeWithin(5_001, LONG);
    };
    await still(ticket, ann);
    await adopt(bob, ann);
    await still(bob, ann);
    await still(bob, ticket);
    // A late copy of the request that detached the lock.
    expect(await ann.transferTo(ticket, 100)).toBeUndefined();
    expect(await bob.remaining()).toBeWithin(5_001, LONG);
  });

  it('is not adopted as a lock of another type', async () => {
    const { ann, bob, ticket } = await detached();
    const other = type === 'write' ? 'reentrant' : 'write';
    const { client, key, owner: to } = bob;
    const request = { key, type: other, clientId: ann.client.id, secret: SECRET, to, leaseTime: LONG } as const;
    expect(await client.backend.adopt!(request)).toMatchObject({ acquired: false });
    expect(await ticket.holds()).toBe(true);
  });

  it('wakes waiters when its lease becomes shorter, because they rest until the former one ends', async () => {
    const [ann, bob, eve] = world.owners(type, 3);
    const ticket = new Owner(ann.client, ann.key, type, ticketOwner(ann.client.id, SECRET));
    await ann.take({ leaseTime: 60_000 });
    const listener = await world.listen(eve);
    await ann.transferTo(ticket, 120_000);
    await adopt(bob, ann, 180_000);
    expect(listener.heard).toHaveLength(0);
    const next = new Owner(bob.client, bob.key, type, ticketOwner(bob.client.id, SECRET));
    await bob.transferTo(next, 90_000);
    await listener.hears(1);
    await adopt(eve, bob, 30_000);
    await listener.hears(2);
    expect(await eve.remaining()).toBeWithin(1, 30_000);
  });
}
