import { openVirtualWorld } from '../../support/lock-world.js';
import { FlightRound, type RoundSettings } from './flight-round.js';

const SEED = Number(process.env.PROPERTY_SEED ?? 1);
const LONG = Number(process.env.CHAOS_LONG ?? 1);

describe('random calls of a single flight', () => {
  const world = openVirtualWorld();

  it.each<[string, RoundSettings, readonly string[]]>([
    ['on a slow network', { faults: false }, ['own', 'shared', 'LockBusyError']],
    ['while everything goes wrong', { faults: true }, ['own', 'shared', 'LockLostError', 'LockUnavailableError']],
  ])(
    'run one after the other, get no result that is not for them, and end: %s',
    async (_, settings, hits) => {
      const seen = new Set<string>();
      for (let seed = SEED; seed < SEED + 1_000 * LONG; seed++) {
        world.renew(seed);
        const processes = await Promise.all(Array.from({ length: 1 + (seed % 3) }, () => world.process()));
        const round = new FlightRound(seed, processes, settings);
        await round.fly();
        await world.tidy();
        if (round.problems.length > 0) throw new Error(round.problems[0]);
        for (const outcome of round.outcomes.keys()) seen.add(outcome);
      }
      for (const hit of hits) expect([...seen]).toContain(hit);
    },
    600_000 * LONG,
  );
});
