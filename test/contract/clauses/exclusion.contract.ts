import { type HeldType, hasLine } from '../../../lib/backends/lock-backend.js';
import { until } from '../../support/until.js';
import { type ContractWorld, SHORT } from '../support/contract-world.js';
import type { Owner } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

/** A lock has at most one owner, for every type but the read lock. */
export function describeExclusion(world: ContractWorld, type: HeldType): void {
  it('reports the holder and the remaining time to others', async () => {
    const [ann, stranger] = world.owners(type, 2);
    const colleague = world.owner(type, ann.key, ann.client);
    await ann.take({ leaseTime: 5_000 });
    for (const other of [stranger, colleague]) {
      const busy = await other.meet();
      expect(busy.holder).toBe(ann.owner);
      expect(busy.remaining).toBeWithin(1, 5_000);
    }
  });

  it('is left as it is by requests that find it busy', async () => {
    const [ann, bob] = world.owners(type, 2);
    await ann.take({ leaseTime: 5_000 });
    await bob.meet({ leaseTime: 60_000 });
    expect((await ann.inspect()).owners).toMatchObject([{ owner: ann.owner }]);
    expect(await ann.remaining()).toBeWithin(1, 5_000);
  });

  it('is acquired in time by a caller that asks again when the reply says so', async () => {
    const [ann, bob] = world.owners(type, 2);
    await ann.take({ leaseTime: SHORT });
    expect(await bob.takeInTime()).toBeWithin(2, 5);
  });

  it('goes to exactly one of many that ask at once', async () => {
    const key = world.key();
    const contenders = world.owners(type, 30, key);
    for (let round = 0; round < 3; round++) {
      const replies = await Promise.all(contenders.map((owner) => owner.acquire()));
      const winners = contenders.filter((_, n) => replies[n].acquired);
      expect(winners).toHaveLength(1);
      const losers = replies.filter((reply) => !reply.acquired);
      const known = [winners[0].owner, ...(world.capabilities.knowsHolders === false ? [undefined] : [])];
      expect(losers.every((reply) => !reply.acquired && known.includes(reply.holder))).toBe(true);
      expect(await winners[0].release()).toMatchObject({ released: true });
    }
  });

  if (world.capabilities.publishes === false) return;

  it('serves all waiters that listen for messages, one at a time', async () => {
    const contenders = world.owners(type, 12);
    const log: string[] = [];
    await Promise.all(contenders.map((owner) => waitAndHold(world, owner, log)));
    const served = contenders.map(({ owner }) => [`in ${owner}`, `out ${owner}`]);
    const inOrder = [...served].sort((a, b) => log.indexOf(a[0]) - log.indexOf(b[0]));
    expect(log).toEqual(inOrder.flat());
  });
}

/**
 * The least that a waiter can do: subscribe, try, and try again at each message. Leases are too long to lapse
 * meanwhile.
 */
async function waitAndHold(world: ContractWorld, owner: Owner, log: string[]): Promise<void> {
  const inLine = hasLine(owner.type) && owner.client.backend.line !== undefined;
  const listener = await (inLine ? world.listenInLine(owner) : world.listen(owner));
  for (let messages = 0; ; messages = listener.heard.length) {
    const reply = await owner.acquire({ waiterTimeout: 60_000 });
    if (reply.acquired) break;
    // A quorum may take a release for a late copy of the one before, within 50 ms. Its waiters ask now and then.
    const asksAgainAt = world.capabilities.nodesLag ? performance.now() + 1_000 : Infinity;
    await until(() => listener.heard.length > messages || performance.now() > asksAgainAt);
  }
  log.push(`in ${owner.owner}`);
  await owner.inspect(); // gives others time to enter
  log.push(`out ${owner.owner}`);
  await owner.release();
}
