import type { SeededRandom } from '../../support/seeded-random.js';
import type { LockTrace, Step } from './trace-of-lock.js';

export const DAMAGES = ['dropped', 'doubled', 'swapped', 'time changed', 'token changed', 'place changed'] as const;

export type Damage = (typeof DAMAGES)[number];

/** A trace with one thing wrong in it, anywhere. */
export function damaged(trace: LockTrace, damage: Damage, chance: SeededRandom): LockTrace {
  const { steps, owners } = trace;
  const copy = [...steps];
  // Steps of other locks matter to this one only as far as they move the clock of tokens. The last step is the check
  // that nothing is left.
  const at = chance.pick(steps.flatMap(({ e }, n) => (e.startsWith('other') || n > steps.length - 3 ? [] : [n])));
  switch (damage) {
    case 'dropped':
      copy.splice(at, 1);
      break;
    case 'doubled':
      copy.splice(at, 0, copy[at]);
      break;
    case 'swapped':
      [copy[at], copy[at + 1]] = [copy[at + 1], copy[at]];
      break;
    case 'time changed':
      copy[at] = { ...copy[at], t: copy[at].t + changeOf(chance) };
      break;
    case 'token changed': {
      const index = chance.pick(steps.flatMap((step, n) => ('token' in step ? [n] : [])));
      copy[index] = { ...copy[index], token: (copy[index].token as number) + changeOf(chance) } as Step;
      break;
    }
    case 'place changed': {
      const index = chance.pick(steps.flatMap(({ e }, n) => (e === 'grant' || e === 'keep' ? [n] : [])));
      const step = copy[index];
      const others = owners.filter((owner) => String(owner) !== String(step.o));
      copy[index] = step.e === 'keep' ? { ...step, kept: !step.kept } : { ...step, o: chance.pick(others) };
    }
  }
  return { ...trace, steps: copy };
}

/** By 1 µs or a second, or anything between, more or less. */
function changeOf(chance: SeededRandom): number {
  const size = Math.round(10 ** chance.between(0, 6));
  return chance.chance(0.5) ? size : -size;
}
