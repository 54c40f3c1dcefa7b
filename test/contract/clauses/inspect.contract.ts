import { isTransferable } from '../../../lib/backends/lock-backend.js';
import type { ContractWorld } from '../support/contract-world.js';
import type { Owner } from '../support/owner.js';

/** What `inspect` shows about a lock, and that locks of different types with one name exclude each other. */
export function describeInspection(world: ContractWorld): void {
  it('shows a free lock', async () => {
    expect(await world.owner('reentrant').inspect()).toEqual({ mode: 'free', owners: [], queue: [], token: undefined });
  });

  it.each([
    ['reentrant', 'exclusive'],
    ['fair', 'exclusive'],
    ['fenced', 'exclusive'],
    ['read', 'read'],
    ['write', 'write'],
    ['permits', 'permits'],
  ] as const)('shows a %s lock as %s, with its owner', async (type, mode) => {
    if (!world.has(type)) return;
    const [ann, bob] = world.owners(type, 2);
    await ann.take({ leaseTime: 5_000 });
    const { owners, ...state } = await bob.inspect();
    expect(state).toMatchObject({ mode, queue: [] });
    expect(owners).toEqual([{ owner: ann.owner, remaining: expect.any(Number) }]);
    expect(owners[0].remaining).toBeWithin(1, 5_000);
  });

  it('shows the last token of a fenced lock, also when it is free', async () => {
    if (!world.has('fenced')) return;
    const [ann, bob] = world.owners('fenced', 2);
    const { token } = await ann.take();
    expect((await bob.inspect()).token).toBe(token);
    await ann.release();
    expect((await bob.inspect()).token).toBe(token);
    const later = await bob.take();
    expect((await ann.inspect()).token).toBe(later.token);
  });

  const types = world.types;
  const pairs = types.flatMap((held) => types.map((asked) => [held, asked] as const));
  const strangers = pairs.filter(([held, asked]) => held !== asked);
  it.each(strangers)('finds the %s lock of a name busy for its %s lock', async (held, asked) => {
    const [ann, bob] = world.owners(held, 2);
    await ann.take({ leaseTime: 5_000 });
    const other = bob.as(asked);
    const busy = await other.meet();
    expect(busy.holder).toBe(ann.owner);
    expect(busy.remaining).toBeWithin(1, 5_000);
    expect(await releaseAndRenew(other)).toEqual([false, false]);
    expect((await ann.inspect()).owners).toMatchObject([{ owner: ann.owner }]);
    await ann.release();
    await other.take();
  });

  const unlike = strangers.filter(([held, asked]) => layoutOf(held) !== layoutOf(asked));
  it.each(unlike)('does not take the owner of a %s lock for that of the %s lock of its name', async (held, asked) => {
    const [ann] = world.owners(held, 1);
    await ann.take();
    await ann.as(asked).meet();
    expect(await ann.as(asked).renew()).toBe(false);
    if (isTransferable(asked)) expect(await ann.as(asked).transferTo(world.owner(asked, ann.key))).toBeUndefined();
    expect(await ann.holds()).toBe(true);
  });
}

async function releaseAndRenew(owner: Owner): Promise<boolean[]> {
  return [(await owner.release()).released, await owner.renew()];
}

function layoutOf(type: string): string {
  if (type === 'read' || type === 'write') return 'read-write';
  return type === 'permits' ? type : 'exclusive';
}
