import { randomUUID } from 'node:crypto';
import { FAR_BACK, type Grant, HEAD_START, SHORTEST_GRANT } from '../../../lib/backends/lock-backend.js';
import { toClientId } from '../../../lib/backends/owner-ids.js';
import { until } from '../../support/until.js';
import { type ContractWorld, SHORT } from '../support/contract-world.js';
import { inHeadStart } from '../support/head-start.js';
import type { Listener } from '../support/listener.js';
import { type AcquireOptions, LONG, Owner } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

const WAITING = { waiterTimeout: LONG };

/** Processes that wait in line, and releases that grant the lock to the first of them. */
export function describeLine(world: ContractWorld, type: 'reentrant' | 'fenced' | 'permits'): void {
  const owners = () => world.owners(type, 3);
  const listenInLine = (owner: Owner): Promise<Listener> => world.listenInLine(owner);
  /** Enters the line, and listens for what concerns the place, as whoever is granted the lock must. */
  const wait = async (owner: Owner, options?: AcquireOptions) => {
    await listenInLine(owner);
    return owner.meet({ ...WAITING, ...options });
  };
  /** The lock is granted to bob, and cem is the next. */
  const granted = async () => {
    const [ann, bob, cem] = owners();
    const listener = await listenInLine(cem);
    await ann.take();
    await wait(bob, { grantLease: SHORTEST_GRANT });
    await wait(cem);
    await ann.release();
    return { bob, cem, listener };
  };

  /** Somebody listens outside the line, where bob is first, then cem: ann's release leaves the lock free. */
  const beforeRelease = async () => {
    const key = world.key();
    // One client, whose requests are executed in the order in which they are sent.
    const [ann, bob, cem, dora] = Array.from({ length: 4 }, () => world.owner(type, key));
    const [line] = [await listenInLine(bob), await world.listen(ann)];
    await ann.take();
    await wait(bob);
    await wait(cem);
    return { ann, bob, cem, dora, line };
  };

  const leftFree = async () => {
    const line = await beforeRelease();
    await line.ann.release();
    return line;
  };

  const itGrants = (title: string, body: () => Promise<void>) =>
    it(title, async () => {
      if (!(await world.freesFirst())) await body();
    });

  /** Those who would wait outside the line of permits want the lock for themselves. */
  const itLeavesFree = (title: string, body: () => Promise<void>) => {
    if (type !== 'permits') itGrants(title, body);
  };

  describe('a line', () => {
    it('is told of a release that leaves the lock free, where nobody can count who listens outside the line', async () => {
      if (!(await world.freesFirst())) return;
      const [ann, bob] = owners();
      const listener = await listenInLine(bob);
      await ann.take();
      await wait(bob);
      await ann.release();
      await listener.hears();
      await bob.take(WAITING);
    });

    itGrants('lets a release grant the lock to its first place, which is told', async () => {
      const [ann, bob, cem] = owners();
      const [bobs, cems] = [await listenInLine(bob), await listenInLine(cem)];
      await ann.take();
      await wait(bob);
      await wait(cem);
      await ann.release();
      await bobs.hears();
      expect(bobs.heard).toEqual([{ kind: 'message', owner: bob.owner, lock: 'granted' }]);
      expect(await bob.remaining()).toBeWithin(LONG / 2, LONG);
      expect((await bob.inspect()).queue).toEqual([cem.owner]);
      expect(cems.heard).toEqual([]);
    });

    /** Bob waits with a nonce, and is granted the lock. */
    const grantedTo = async (bob: Owner, ann: Owner, options = {}) => {
      const listener = await listenInLine(bob);
      const { token } = await ann.take();
      await bob.meet({ ...WAITING, ...options, nonce: 'old' });
      const asked = world.now();
      await bob.meet({ ...WAITING, ...options, nonce: 'n-1' });
      const entered = world.now();
      await world.elapse(200); // until the clock of the tokens is no longer ahead
      const released = world.now();
      await ann.release();
      const granted = world.now();
      await listener.hears();
      return { asked, entered, released, granted, token, grant: listener.heard[0].grant as Grant };
    };

    itGrants('says in the message what is granted: the lease, how long after the request, and the token', async () => {
      const [ann, bob, cem] = owners();
      const options = { reserve: 3, grantLease: 5_000 };
      const { asked, entered, released, granted, token, grant } = await grantedTo(bob, ann, options);
      expect(grant.nonce).toBe('n-1');
      expect(grant.lease).toBe(5_000);
      expect(await bob.remaining()).toBeWithin(1, 5_000);
      expect(grant.token).toBeGreaterThan(token);
      if (type !== 'permits') expect(grant.reserved).toBe(3);
      expect(grant.after).toBeWithin(released - entered - 1, granted - asked + 1);
      await bob.release();
      expect((await cem.take()).token).toBeGreaterThan(grant.token + grant.reserved);
    });

    itGrants('says nothing of a token to who has sent no nonce', async () => {
      const [ann, bob] = owners();
      const listener = await listenInLine(bob);
      await ann.take();
      await wait(bob);
      await ann.release();
      await listener.hears();
      expect(listener.heard[0]).toMatchObject({ lock: 'granted' });
      expect(listener.heard[0].grant).toBeUndefined();
    });

    itGrants('counts the time of a grant from the last refresh of the place', async () => {
      const [ann, bob] = owners();
      const listener = await listenInLine(bob);
      await ann.take();
      await wait(bob, { nonce: 'n-1' });
      await world.elapse(200);
      const refreshed = world.now();
      expect(await bob.refreshWaiter(LONG, undefined, 'n-2')).toBe(true);
      await ann.release();
      const granted = world.now();
      // Whoever is first is told of a holder whose release does not serve the line.
      await until(() => listener.heard.some(({ lock }) => lock === 'granted'));
      const { grant } = listener.heard.at(-1) as { grant: Grant };
      expect(grant.nonce).toBe('n-2');
      expect(grant.after).toBeWithin(0, granted - refreshed + 1);
    });

    itGrants('grants a second at least', async () => {
      const [ann, bob] = owners();
      await ann.take();
      await wait(bob, { grantLease: 10 });
      await ann.release();
      expect(await bob.remaining()).toBeWithin(SHORT, SHORTEST_GRANT);
    });

    itGrants(
      'keeps the lease that was granted if a request asks for less, and makes it longer if it asks for more',
      async () => {
        const [ann, bob, cem] = owners();
        const { token } = await ann.take();
        await wait(bob, { grantLease: LONG / 2 });
        await ann.release();
        const first = await bob.take({ ...WAITING, leaseTime: SHORT });
        expect(first.token).toBeGreaterThan(token);
        expect(await bob.remaining()).toBeWithin(SHORT + 1, LONG / 2);
        await bob.take({ ...WAITING, leaseTime: LONG });
        expect(await bob.remaining()).toBeWithin(LONG / 2 + 1, LONG);
        await cem.meet();
        expect(await bob.release()).toMatchObject({ released: true });
        await cem.take();
      },
    );

    itGrants('passes over a place that nobody listens for, and keeps it', async () => {
      const [ann, bob, cem] = owners();
      const listener = await listenInLine(cem);
      await ann.take();
      await bob.meet(WAITING);
      await cem.meet(WAITING);
      await ann.release();
      await listener.hears();
      expect(await cem.holds()).toBe(true);
      expect((await cem.inspect()).queue).toEqual([bob.owner]);
    });

    itGrants('passes over a place that owes a refresh, until it is refreshed', async () => {
      const [ann, bob, cem] = owners();
      await ann.take();
      await wait(bob, { waiterTimeout: 4_000 });
      await wait(cem);
      await world.elapse(2_700);
      await ann.release();
      expect(await cem.holds()).toBe(true);
      expect(await bob.refreshWaiter()).toBe(true);
      await cem.release();
      expect(await bob.holds()).toBe(true);
    });

    itGrants('leaves the lock free if everybody owes a refresh, and tells the first two', async () => {
      const [ann, bob, cem] = owners();
      const [bobs, cems] = [await listenInLine(bob), await listenInLine(cem)];
      await ann.take();
      await wait(bob, { waiterTimeout: 4_000 });
      await wait(cem, { waiterTimeout: 4_000 });
      await world.elapse(2_700);
      await ann.release();
      await Promise.all([bobs.hears(), cems.hears()]);
      expect((await ann.inspect()).mode).toBe('free');
      expect([...bobs.heard, ...cems.heard].map(({ owner }) => owner)).toEqual([bob.owner, cem.owner]);
      await bob.take(WAITING);
    });

    itGrants('is served in the order of arrival, also if somebody asks again', async () => {
      const [ann, bob, cem] = owners();
      await ann.take();
      await wait(bob);
      await wait(cem);
      await wait(bob);
      expect((await ann.inspect()).queue).toEqual([bob.owner, cem.owner]);
      await ann.release();
      await bob.take(WAITING);
      await wait(ann);
      await bob.release();
      await wait(ann);
      await cem.take(WAITING);
      await cem.release();
      expect(await ann.holds()).toBe(true);
    });

    itGrants('is entered by none who does not wait', async () => {
      const [ann, bob] = owners();
      await ann.take();
      await bob.meet();
      expect((await ann.inspect()).queue).toEqual([]);
      await ann.release();
      expect(await bob.holds()).toBe(false);
    });

    itGrants('passes over a place that nobody has refreshed', async () => {
      const [ann, bob, cem] = owners();
      await ann.take();
      await wait(bob, { waiterTimeout: SHORT });
      await wait(cem);
      await world.elapse(SHORT + 50);
      expect(await bob.refreshWaiter()).toBe(false);
      expect((await ann.inspect()).queue).toEqual([cem.owner]);
      await ann.release();
      expect(await cem.holds()).toBe(true);
    });

    itGrants('keeps a place that is refreshed', async () => {
      const [ann, bob] = owners();
      await ann.take();
      await wait(bob, { waiterTimeout: SHORT });
      expect(await bob.refreshWaiter(LONG)).toBe(true);
      await world.elapse(SHORT + 50);
      await ann.release();
      expect(await bob.holds()).toBe(true);
    });

    itGrants(
      'keeps a place far back for longer, and grants it the lock if nobody in front of it lives any more',
      async () => {
        const [ann, ...waiting] = world.owners(type, FAR_BACK + 2);
        const [near, far] = waiting.slice(-2);
        await ann.take();
        for (const owner of waiting.slice(0, -2)) await wait(owner);
        expect((await wait(near)).keptLonger).toBeUndefined();
        expect((await wait(far, { waiterTimeout: SHORT })).keptLonger).toBe(true);
        // Only now, because a slow machine takes its time to put so many in line.
        await ann.client.backend.refreshWaiters(waiting.slice(0, -1), SHORT);
        await ann.renew(SHORT);
        await world.elapse(SHORT + 50);
        expect(await far.refreshWaiter()).toBe(true);
        expect(await far.holds()).toBe(true);
        expect(await near.refreshWaiter()).toBe(false);
      },
    );

    itGrants('keeps a place far back for longer when it is refreshed', async () => {
      const [ann, ...waiting] = world.owners(type, FAR_BACK + 2);
      await ann.take();
      for (const owner of waiting) await wait(owner);
      const [near, far] = waiting.slice(-2);
      const longer: Owner[] = [];
      const keep = (owner: Owner) => owner.refreshWaiter(SHORT, () => longer.push(owner));
      expect([await keep(near), await keep(far)]).toEqual([true, true]);
      expect(longer).toEqual([far]);
      await world.elapse(SHORT + 50);
      expect([await keep(near), await far.refreshWaiter()]).toEqual([false, true]);
      expect(longer).toEqual([far]);
    });

    itGrants('is left by who is removed', async () => {
      const [ann, bob, cem] = owners();
      await ann.take();
      await wait(bob);
      await wait(cem);
      await bob.removeWaiter();
      expect((await ann.inspect()).queue).toEqual([cem.owner]);
      expect(await ann.holds()).toBe(true);
    });

    itGrants('passes the lock on if it was granted to who leaves', async () => {
      const { bob, cem, listener } = await granted();
      await bob.removeWaiter();
      await listener.hears();
      expect(await cem.holds()).toBe(true);
      await cem.removeWaiter();
      expect((await cem.inspect()).mode).toBe('free');
    });

    itGrants('takes nothing from another owner when somebody leaves', async () => {
      const [ann, bob] = owners();
      await ann.take();
      await bob.removeWaiter();
      expect(await ann.holds()).toBe(true);
    });

    itGrants('grants the lock to the next when the process that was granted it has died', async () => {
      const { bob, cem, listener } = await granted();
      await world.elapse(SHORTEST_GRANT + 50);
      expect(await cem.refreshWaiter()).toBe(true);
      await listener.hears();
      expect(await cem.holds()).toBe(true);
      await bob.meet();
    });

    itGrants('goes before those who enter it when the lock is free', async () => {
      const [ann, bob, cem] = owners();
      await ann.take({ leaseTime: SHORT });
      await wait(bob);
      await world.elapse(SHORT + 50);
      expect((await wait(cem)).holder).toBe(bob.owner);
      expect(await bob.holds()).toBe(true);
      expect((await cem.inspect()).queue).toEqual([cem.owner]);
    });

    itLeavesFree('leaves every second release to those who listen outside it', async () => {
      const [ann, bob, cem] = owners();
      const [bobs, cems] = [await listenInLine(bob), await world.listen(cem)];
      await ann.take();
      await wait(bob);
      await ann.release();
      await Promise.all([bobs.hears(), cems.hears()]);
      expect(bobs.heard).toEqual([{ kind: 'message', owner: bob.owner, lock: 'free' }]);
      expect((await ann.inspect()).mode).toBe('free');
      await cem.take();
      await wait(bob);
      await wait(ann);
      await cem.release();
      expect(await bob.holds()).toBe(true);
      await bob.take();
      await bob.release();
      expect((await ann.inspect()).mode).toBe('free');
    });

    itLeavesFree('leaves the lock free for those outside it as long as their head start lasts', async () => {
      await inHeadStart(
        world,
        beforeRelease,
        ({ ann, bob, dora }) =>
          [() => ann.release(), () => bob.refreshWaiter(), () => dora.meet(WAITING), () => dora.inspect()] as const,
        async ([, , reply, { mode, queue }], { dora }) => {
          expect(reply.holder).toBeUndefined();
          expect(reply.remaining).toBeWithin(1, HEAD_START);
          expect(mode).toBe('free');
          expect(queue).toContain(dora.owner);
        },
      );
    });

    itLeavesFree('lets its first place have the lock during that time, which does not ask before it must', async () => {
      const { bob } = await leftFree();
      await bob.take(WAITING);
    });

    itLeavesFree('tells the next place if the first leaves during that time', async () => {
      await inHeadStart(
        world,
        beforeRelease,
        ({ ann, bob, cem }) => [() => ann.release(), () => bob.removeWaiter(), () => cem.inspect()] as const,
        async ([, , { mode }], { bob, cem, line }) => {
          expect(mode).toBe('free');
          await line.hears(2);
          expect(line.heard).toEqual([
            { kind: 'message', owner: bob.owner, lock: 'free' },
            { kind: 'message', owner: cem.owner, lock: 'free' },
          ]);
        },
      );
    });

    itLeavesFree('grants the lock to its first place once that time is over, when a place is refreshed', async () => {
      const { bob, cem, line } = await leftFree();
      await world.elapse(HEAD_START + 1);
      await cem.refreshWaiter();
      await line.hears(2);
      expect(line.heard).toMatchObject([
        { owner: bob.owner, lock: 'free' },
        { owner: bob.owner, lock: 'granted' },
      ]);
      expect(await bob.holds()).toBe(true);
    });

    itLeavesFree('grants the lock to its first place once that time is over, when somebody enters', async () => {
      const { bob, dora } = await leftFree();
      await world.elapse(HEAD_START + 1);
      expect((await wait(dora)).holder).toBe(bob.owner);
      expect(await bob.holds()).toBe(true);
    });

    itGrants('is told when the lease becomes shorter', async () => {
      const [ann, bob] = owners();
      const listener = await listenInLine(bob);
      await ann.take({ leaseTime: LONG });
      await wait(bob);
      await ann.renew(SHORT);
      await listener.hears();
      expect(listener.heard).toEqual([{ kind: 'message', owner: bob.owner, lock: undefined }]);
      expect((await wait(bob)).remaining).toBeWithin(0, SHORT);
    });

    itGrants('is served after a forced release', async () => {
      const [ann, bob] = owners();
      const listener = await listenInLine(bob);
      await ann.take();
      await wait(bob);
      expect(await bob.forceRelease()).toEqual([ann.owner]);
      await listener.hears();
      await bob.take(WAITING);
    });

    /** Bob is the first in line, then cem, while a client holds the lock whose releases serve the line or do not. */
    const behind = async (clientId: (uuid: string) => string) => {
      const [ann, bob, cem] = owners();
      const holder = new Owner(ann.client, ann.key, type, `${clientId(randomUUID())}:1`);
      const [bobs, cems] = [await listenInLine(bob), await listenInLine(cem)];
      await holder.take();
      await wait(bob);
      await wait(cem);
      return { holder, bob, cem, bobs, cems };
    };
    const told = ({ owner }: Owner) => ({ kind: 'message', owner, lock: undefined });

    if (type !== 'permits') {
      itGrants(
        'hears that the first in line stays or leaves while a client that uses no line holds the lock',
        async () => {
          const { bob, cem, bobs, cems } = await behind((uuid) => uuid);
          expect(await cem.refreshWaiter()).toBe(true);
          expect(await bob.refreshWaiter()).toBe(true);
          await bobs.hears();
          expect(bobs.heard).toEqual([told(bob)]);
          expect(cems.heard).toEqual([]);
          await bob.removeWaiter();
          await cems.hears();
          expect(cems.heard).toEqual([told(cem)]);
        },
      );

      itGrants('is not told in that case while the holder is a client whose release serves the line', async () => {
        const { holder, bob, cem, bobs, cems } = await behind(toClientId);
        expect(await bob.refreshWaiter()).toBe(true);
        await bob.removeWaiter();
        await holder.release();
        await cems.hears();
        expect(cems.heard).toEqual([{ ...told(cem), lock: 'granted' }]);
        expect(bobs.heard).toEqual([]);
      });
    }

    itGrants('waits behind a fair lock as well', async () => {
      if (!world.has('fair')) return;
      const [ann, bob] = owners();
      const listener = await listenInLine(bob);
      await ann.as('fair').take();
      await wait(bob);
      await ann.as('fair').release();
      await listener.hears();
      await bob.take(WAITING);
    });

    itGrants('does not keep a lock from being acquired by other types when nobody is left in it', async () => {
      const [ann, bob, cem] = owners();
      await ann.take();
      await wait(bob);
      await bob.removeWaiter();
      await ann.release();
      await cem.take();
    });
  });
}
