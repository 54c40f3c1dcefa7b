import { type Acquired, type HeldType, isTransferable } from '../../../lib/backends/lock-backend.js';
import { type ContractWorld, LAPSING } from '../support/contract-world.js';
import type { Owner } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

/** The most that the clock of tokens may be ahead of the wall clock, in µs. */
const MAX_LEAD = 100_000;

/** How much two clocks of one machine may differ, in µs. */
const TOLERANCE = 50_000;

export function describeTokens(world: ContractWorld, type: HeldType): void {
  it('gives growing tokens to one owner after the other', async () => {
    const owners = world.owners(type, 9);
    const tokens: number[] = [];
    for (const owner of owners) {
      tokens.push((await owner.take()).token);
      await owner.release();
    }
    expect(tokens).toStrictlyGrow();
    expect(tokens.every(Number.isSafeInteger)).toBe(true);
  });

  it('gives growing tokens however the acquisition before ended', async () => {
    const [ann, bob, eve] = world.owners(type, 3);
    const tokens = [(await ann.take()).token];
    tokens.push((await ann.take()).token);
    tokens.push((await next(type, ann, bob)).token);
    await eve.forceRelease();
    tokens.push((await eve.take({ leaseTime: LAPSING })).token);
    await world.lapse(eve);
    tokens.push((await ann.take()).token);
    await ann.release();
    tokens.push((await bob.take()).token);
    expect(tokens).toStrictlyGrow();
  });

  it('gives tokens that follow the wall clock, so that they continue to grow after a loss of all data', async () => {
    const [ann] = world.owners(type, 1);
    const before = world.wall() * 1_000;
    expect((await ann.take()).token).toBeGreaterThanOrEqual(before - TOLERANCE);
  });

  if (world.capabilities.joinsQuorums !== false) describeRaisedTokens(world, type);

  it('reserves no tokens unless requested', async () => {
    const [ann] = world.owners(type, 1);
    expect((await ann.take()).reserved).toBe(0);
  });

  if (world.capabilities.reserves === false) return;

  /**
   * A new clock of tokens starts ahead of the wall clock, and no tokens are reserved until the wall clock has caught
   * up.
   */
  const reachClock = async ([ann]: readonly Owner[]) => {
    await ann.take();
    await ann.release();
    await world.elapse(200);
  };

  it('reserves tokens that nobody else gets', async () => {
    const owners = world.heirs(type, 3);
    const [ann, bob, eve] = owners;
    await reachClock(owners);
    const first = await ann.take({ reserve: 64 });
    expect(first.reserved).toBe(64);
    const second = await next(type, ann, bob, 8_192);
    expect(second.token).toBeGreaterThan(first.token + first.reserved);
    expect(second.reserved).toBe(8_192);
    await bob.release();
    expect((await eve.take()).token).toBeGreaterThan(second.token + second.reserved);
  });

  it('reserves no more than a tenth of a second ahead of the clock', async () => {
    const owners = world.owners(type, 1);
    const [ann] = owners;
    await reachClock(owners);
    for (let n = 0; n < 5; n++) {
      const { token, reserved } = await ann.take({ reserve: 10 * MAX_LEAD });
      const lead = token + reserved - world.wall() * 1_000;
      expect(reserved).toBeWithin(0, MAX_LEAD);
      expect(lead).toBeLessThanOrEqual(MAX_LEAD + TOLERANCE);
    }
  });
}

function describeRaisedTokens(world: ContractWorld, type: HeldType): void {
  it('gives tokens above one that was raised', async () => {
    const [ann, bob, eve] = world.heirs(type, 3);
    const { token } = await ann.take();
    const raised = token + 20_000; // little enough to be reached soon, because other locks use the same clock
    await bob.raiseToken(raised);
    await bob.raiseToken(token);
    const second = await next(type, ann, bob);
    expect(second.token).toBeGreaterThan(raised);
    await bob.release();
    expect((await eve.take()).token).toBeGreaterThan(second.token);
  });

  it('gives a first token above one that was raised', async () => {
    const [ann, bob] = world.owners(type, 2);
    const raised = world.wall() * 1_000 + 20_000;
    await bob.raiseToken(raised);
    expect((await ann.inspect()).mode).toBe('free');
    expect((await ann.take()).token).toBeGreaterThan(raised);
  });
}

/** The acquisition after the one of `owner`: a transfer, for types that have transfers. */
async function next(type: HeldType, owner: Owner, successor: Owner, reserve = 0): Promise<Acquired> {
  if (isTransferable(type)) return (await owner.transferTo(successor, 60_000, reserve))!;
  await owner.release();
  return successor.take({ reserve });
}
