import type {
  Acquired,
  FlightBackend,
  FlightBusy,
  FlightReleaseReply,
  FlightReply,
  FlightRequest,
} from '../../../lib/backends/lock-backend.js';
import { type ContractWorld, LAPSING } from '../support/contract-world.js';
import type { Owner } from '../support/owner.js';
import { LONG } from '../support/owner.js';

const MAX_SIZE = 1024 * 1024;

/** In milliseconds: longer than the clock of tokens may be ahead of the server's clock (0.15 s when it is new). */
const CLOCK_LEAD = 200;

/** Single flights and their results. */
export function describeFlights(world: ContractWorld): void {
  if (world.capabilities.flights === false) {
    it('has no single flights', () => {
      for (const { backend } of world.clients) expect(backend.flights).toBeUndefined();
    });
    return;
  }

  const flights = ({ client }: Owner) => client.backend.flights as FlightBackend;
  const ask = (owner: Owner, request: Partial<FlightRequest> = {}): Promise<FlightReply> =>
    flights(owner).acquire({
      key: owner.key,
      owner: owner.owner,
      leaseTime: LONG,
      begin: undefined,
      keepFor: 0,
      maxSize: MAX_SIZE,
      ...request,
    });
  const start = async (owner: Owner, request?: Partial<FlightRequest>): Promise<number> => {
    const reply = await ask(owner, request);
    expect(reply).toMatchObject({ acquired: true });
    return (reply as Acquired).token;
  };
  /** The lock is busy, and there is no result for this caller. */
  const meet = async (owner: Owner, request?: Partial<FlightRequest>): Promise<FlightBusy> => {
    const reply = (await ask(owner, request)) as FlightBusy;
    expect(reply).toMatchObject({ acquired: false });
    expect(reply.result).toBeUndefined();
    return reply;
  };
  /** @param late for how many milliseconds the runner has had its result already */
  const land = (owner: Owner, token: number, value: string, keepFor = 0, late = -LONG): Promise<FlightReleaseReply> => {
    const runnerWaitsUntil = world.now() - late;
    return flights(owner).release({ key: owner.key, owner: owner.owner, token, keepFor, value, runnerWaitsUntil });
  };
  /** `runner` gets the lock, and `other` finds it busy. */
  const meetWhile = async (runner: Owner, other: Owner): Promise<FlightBusy> => {
    await start(runner);
    return meet(other);
  };
  const valueFor = async (owner: Owner, request?: Partial<FlightRequest>): Promise<string | undefined> => {
    const reply = await ask(owner, request);
    return reply.acquired ? undefined : reply.result?.value;
  };
  const mayJoin = (runner: Owner, token: number) =>
    flights(runner).mayJoin({ key: runner.key, owner: runner.owner, token });
  const owners = (count: number, name?: string) => world.owners('flight', count, world.key(name));

  describe('a single flight', () => {
    it('has one runner, and busy answers carry growing readings above its token', async () => {
      const [ann, bob, cem] = owners(3);
      const token = await start(ann);
      const first = await meet(bob);
      const second = await meet(cem);
      expect(first).toMatchObject({ holder: ann.owner });
      expect(first.reading).toBeGreaterThan(token);
      expect(second.reading).toBeGreaterThan(first.reading);
      expect(await ann.inspect()).toMatchObject({ mode: 'exclusive', owners: [{ owner: ann.owner }] });
    });

    it('renews the runner that asks again', async () => {
      const [ann] = owners(1);
      const token = await start(ann);
      expect(await start(ann)).toBeGreaterThan(token);
    });

    it('and locks of other types exclude each other', async () => {
      const [ann, bob] = owners(2);
      for (const type of world.types) {
        const other = bob.as(type);
        await other.take();
        expect(await meet(ann)).toMatchObject({ holder: bob.owner });
        expect(await other.release()).toMatchObject({ released: true });
        const runner = world.owner('flight', ann.key);
        const token = await start(runner);
        await world.owner(type, ann.key).meet();
        expect(await land(runner, token, '1')).toMatchObject({ released: 'now' });
      }
    });

    it('is renewed, released without a result and released by force as other locks', async () => {
      const [ann, bob] = owners(2);
      await start(ann, { leaseTime: LAPSING });
      expect(await ann.renew()).toBe(true);
      await world.elapse(LAPSING);
      expect(await bob.renew()).toBe(false);
      expect(await ann.release()).toMatchObject({ released: true });
      const token = await start(bob);
      expect(await ann.forceRelease()).toEqual([bob.owner]);
      expect(await land(bob, token, '1')).toMatchObject({ released: 'gone' });
      await start(world.owner('flight', ann.key));
    });

    it('wakes listeners when it ends', async () => {
      const [ann, bob] = owners(2);
      const token = await start(ann);
      const [flight, plain] = [await world.listen(bob), await world.listen(bob.as('reentrant'))];
      await land(ann, token, '1');
      await flight.hears(1);
      await plain.hears(1);
    });
  });

  if (world.capabilities.lines !== false) {
    it('leaves the lock of a single flight that has ended to clients that listen outside the line, if any', async () => {
      if (await world.freesFirst()) return;
      const [ann, bob] = owners(2);
      const line = await world.listenInLine(bob);
      const ends = async () => {
        const token = await start(ann);
        await bob.as('reentrant').meet({ waiterTimeout: LONG });
        await land(ann, token, '1');
      };
      await ends();
      await line.hears(1);
      const outside = await world.listen(ann);
      await ends();
      await line.hears(2);
      outside.close();
      expect(line.heard.map(({ lock }) => lock)).toEqual([undefined, 'free']);
    });
  }

  describe('the result of a single flight', () => {
    it('is given to callers that asked before it was there', async () => {
      const [ann, bob, cem] = owners(3, 'a name {with} braces');
      const token = await start(ann);
      const { reading: begin } = await meet(bob);
      expect(await land(ann, token, '"ä\\n"')).toMatchObject({ released: 'now', resent: false });
      const reply = (await ask(bob, { begin })) as FlightBusy;
      expect(reply.result).toMatchObject({ value: '"ä\\n"', run: ann.owner });
      expect(reply.result?.ended).toBeGreaterThan(begin);
      expect(reply.result?.before).toBe(reply.result?.ended);
      expect(reply.reading).toBeGreaterThan(reply.result?.ended as number);
      await start(cem);
    });

    it('is not given to callers that asked after it was there', async () => {
      const [ann, bob] = owners(2);
      const token = await start(ann);
      await meet(bob);
      await land(ann, token, '1');
      const cem = world.owner('flight', ann.key);
      const next = await start(cem);
      const { reading: begin } = await meet(world.owner('flight', ann.key));
      await meet(bob, { begin });
      await land(cem, next, '2');
      expect(await valueFor(bob, { begin })).toBe('2');
    });

    it('is not stored if nobody waits and nobody keeps it', async () => {
      const [ann, bob] = owners(2);
      await land(ann, await start(ann), '1');
      expect(await flights(ann).inspect(ann.key)).toBeUndefined();
      expect(await valueFor(bob, { begin: 1 })).toBeUndefined();
    });

    it('is kept for as long as both the runner and the caller say', async () => {
      const [ann, bob, cem] = owners(3);
      await land(ann, await start(ann), '[1]', LONG);
      expect(await flights(bob).inspect(ann.key)).toEqual({ size: 3, remaining: expect.any(Number) });
      expect((await flights(bob).inspect(ann.key))?.remaining).toBeWithin(1, LONG);
      expect(await valueFor(bob, { keepFor: LONG })).toBe('[1]');
      await world.elapse(LAPSING);
      expect(await valueFor(bob, { keepFor: LONG })).toBe('[1]');
      expect(await valueFor(bob, { keepFor: LAPSING - CLOCK_LEAD })).toBeUndefined();
      expect(await valueFor(cem, { keepFor: LONG })).toBe('[1]');
    });

    it('expires', async () => {
      const [ann, bob] = owners(2);
      await land(ann, await start(ann), '1', LAPSING);
      await world.elapse(LAPSING + CLOCK_LEAD);
      expect(await flights(ann).inspect(ann.key)).toBeUndefined();
      await start(bob, { keepFor: LONG });
    });

    it('goes to nobody who asked after the runner had it, if it is stored late', async () => {
      const [ann, bob] = owners(2);
      const token = await start(ann);
      const answered = world.now();
      await world.elapse(LAPSING);
      const { reading: begin } = await meet(bob);
      expect(await land(ann, token, '1', LONG, world.now() - answered)).toMatchObject({ released: 'now' });
      const { result } = (await ask(world.owner('flight', ann.key), { keepFor: LONG })) as FlightBusy;
      expect(result?.ended).toBeLessThan(begin);
      expect(result?.before).toBe(result?.ended);
      expect(await valueFor(bob, { begin })).toBeUndefined();
    });

    it('is as old as its run, if it is stored late', async () => {
      const [ann, bob, cem] = owners(3);
      await land(ann, await start(ann), '1', LONG, LAPSING);
      const { age } = (await ask(bob, { keepFor: LONG })) as FlightBusy;
      expect(age).toBeWithin(LAPSING * 1_000, LONG * 1_000);
      expect(await valueFor(cem, { keepFor: LAPSING })).toBeUndefined();
      await land(cem, await start(cem), '2', LAPSING, 2 * LAPSING);
      expect(await flights(bob).inspect(bob.key)).toBeUndefined();
    });

    it('is stored once, however often it is sent', async () => {
      const [ann, bob] = owners(2);
      const token = await start(ann);
      await meet(bob);
      await land(ann, token, '1');
      expect(await land(ann, token, '1')).toMatchObject({ released: 'before' });
      const next = await start(bob);
      expect(await land(ann, token, '1')).toMatchObject({ released: 'before' });
      expect(await bob.renew()).toBe(true);
      await land(bob, next, '2', LONG);
      expect(await land(ann, token, '1')).toMatchObject({ released: 'gone' });
      expect(await valueFor(world.owner('flight', ann.key), { keepFor: LONG })).toBe('2');
    });

    it('refuses a late copy of the acquisition of its run', async () => {
      const [ann, bob] = owners(2);
      const token = await start(ann);
      await meet(bob);
      await land(ann, token, '1', LONG);
      expect(await ask(ann)).toMatchObject({ acquired: false });
      expect((await ann.inspect()).mode).toBe('free');
      await start(bob);
    });

    it('is not stored by a run that has lost its lock', async () => {
      const [ann, bob] = owners(2);
      const token = await start(ann, { leaseTime: LAPSING });
      const { reading: begin } = await meet(bob);
      await world.elapse(LAPSING);
      expect(await land(ann, token, '1', LONG)).toMatchObject({ released: 'gone' });
      await start(bob, { begin, keepFor: LONG });
    });

    it('of an earlier run is given while another run is under way, to callers that keep results', async () => {
      const [ann, bob, cem] = owners(3);
      await land(ann, await start(ann), '1', LONG);
      await start(bob);
      expect(await valueFor(cem, { keepFor: LONG })).toBe('1');
      await meet(cem);
    });

    it.each([100 * 1024, MAX_SIZE])('of %i bytes comes back as it was', async (size) => {
      const [ann, bob, cem] = owners(3);
      const value = 'ü'.repeat(size / 2);
      await land(ann, await start(ann), value, LONG);
      expect(await valueFor(bob, { keepFor: LONG })).toBe(value);
      expect(await flights(ann).inspect(ann.key)).toMatchObject({ size });
      expect(await valueFor(cem, { keepFor: LONG, maxSize: size - 1 })).toBeUndefined();
      expect(await cem.holds()).toBe(true);
    });
  });

  describe('a result that is forgotten', () => {
    const forget = (owner: Owner) => flights(owner).forget(owner.key);

    it('is gone', async () => {
      const [ann, bob] = owners(2);
      expect(await forget(ann)).toBe(false);
      await land(ann, await start(ann), '1', LONG);
      expect(await forget(bob)).toBe(true);
      expect(await forget(bob)).toBe(false);
      await start(bob, { keepFor: LONG });
    });

    it('while it is computed, serves only callers that already waited', async () => {
      const [ann, bob, cem] = owners(3);
      const token = await start(ann);
      const { reading: early } = await meet(bob);
      expect(await mayJoin(ann, token)).toBe(true);
      await forget(cem);
      expect(await mayJoin(ann, token)).toBe(false);
      const { reading: late } = await meet(cem);
      await land(ann, token, '1', LONG);
      expect(await flights(bob).inspect(ann.key)).toBeUndefined();
      expect(await valueFor(bob, { begin: early })).toBe('1');
      expect(await valueFor(bob, { begin: early, keepFor: LONG })).toBe('1');
      await start(cem, { begin: late, keepFor: LONG });
    });

    it('twice while it is computed, serves only callers that waited before the first time', async () => {
      const [ann, bob, cem] = owners(3);
      const token = await start(ann);
      const { reading: early } = await meet(bob);
      await forget(cem);
      const { reading: between } = await meet(cem);
      await forget(bob);
      await land(ann, token, '1', LONG);
      expect(await valueFor(bob, { begin: early })).toBe('1');
      await start(cem, { begin: between, keepFor: LONG });
    });

    it('is not given to callers that asked later, even if the runner had to ask twice for the lock', async () => {
      const [ann, bob, cem] = owners(3);
      const { reading: early } = await meetWhile(ann, bob);
      await forget(cem);
      const token = await start(ann);
      await forget(bob);
      const { reading: late } = await meet(cem);
      await land(ann, token, '1', LONG);
      expect(await valueFor(bob, { begin: early })).toBe('1');
      await start(cem, { begin: late, keepFor: LONG });
    });

    it('before a run began, does not concern that run', async () => {
      const [ann, bob, cem] = owners(3);
      const token = await start(ann);
      await forget(bob);
      await land(ann, token, '1');
      const next = await start(bob);
      expect(await mayJoin(bob, next)).toBe(true);
      await land(bob, next, '2', LONG);
      expect(await valueFor(cem, { keepFor: LONG })).toBe('2');
    });

    it('when no run holds the lock, is not remembered, so that nobody may join a run that has lost it', async () => {
      const [ann, bob, cem] = owners(3);
      const token = await start(ann, { leaseTime: LAPSING });
      await world.elapse(LAPSING);
      await forget(bob);
      expect(await mayJoin(ann, token)).toBe(false);
      const next = await start(cem);
      expect(await mayJoin(ann, token)).toBe(false);
      expect(await mayJoin(cem, next)).toBe(true);
    });

    it('is remembered for as long as the run lasts', async () => {
      const [ann, bob] = owners(2);
      const token = await start(ann, { leaseTime: LAPSING });
      await forget(bob);
      expect(await ann.renew()).toBe(true);
      await world.elapse(2 * LAPSING);
      expect(await mayJoin(ann, token)).toBe(false);
      await land(ann, token, '1', LONG);
      await start(bob, { keepFor: LONG });
    });
  });
}
