import { openVirtualWorld } from '../../support/lock-world.js';
import { ScopeTree, type TreeSettings } from './scope-tree.js';

const SEED = Number(process.env.PROPERTY_SEED ?? 1);
const LONG = Number(process.env.CHAOS_LONG ?? 1);

describe('random trees of scopes', () => {
  const world = openVirtualWorld();

  it.each<[string, TreeSettings, number, readonly string[]]>([
    ['re-entrant locks', { readWrite: false, faults: false, jumps: true }, 400, ['LockBusyError']],
    [
      'readers and writers',
      { readWrite: true, faults: false, jumps: false },
      1_200,
      ['LockBusyError', 'LockUpgradeError'],
    ],
    ['readers and writers while clocks jump', { readWrite: true, faults: false, jumps: true }, 500, ['LockBusyError']],
    [
      'readers and writers while everything goes wrong',
      { readWrite: true, faults: true, jumps: true },
      800,
      ['LockUpgradeError', 'LockLostError'],
    ],
  ])(
    'keep bodies apart that are not inside each other, and end: %s',
    async (_, settings, count, hits) => {
      const seen = new Set<string>();
      for (let seed = SEED; seed < SEED + count * LONG; seed++) {
        world.renew(seed);
        const processes = [await world.process(), ...(seed % 2 === 0 ? [await world.process()] : [])];
        const tree = new ScopeTree(seed, processes, settings);
        await tree.grow();
        await world.tidy();
        if (tree.problems.length > 0) throw new Error(tree.problems[0]);
        for (const error of tree.outcomes.keys()) seen.add(error);
      }
      for (const hit of hits) expect([...seen]).toContain(hit);
    },
    600_000 * LONG,
  );
});
