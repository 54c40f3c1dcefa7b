import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import type { SeededRandom } from '../seeded-random.js';

/** One acquisition of a random flow, and the work while its locks are held. */
export interface Plan {
  readonly names: readonly string[];
  readonly type: NonNullable<LockOptions['type']> | 'permits';
  /** How long it works before and after the inner acquisitions, in ms. */
  readonly work: number;
  /** The acquisitions inside this one. */
  readonly inner: readonly Plan[];
  /** Whether the inner acquisitions run at once instead of one after the other. */
  readonly parallel: boolean;
}

const PLAIN = ['a', 'b', 'c'];
const FAIR = 'fair';
const FENCED = 'fenced';
const READ_WRITE = ['page', 'site'];
const SEVERAL = ['room', 'hall'];

/** How many may hold this lock, whose type is `permits`. */
export function permitsOf(name: string): number {
  return name === 'room' ? 2 : 3;
}

/**
 * A tree of acquisitions, each inside the one above. No reader asks for the write lock, because that is another error.
 */
export function randomPlan(chance: SeededRandom, depth = 3, read: ReadonlySet<string> = new Set()): Plan {
  const { names, type } = randomLocks(chance, read);
  const below = type === 'read' ? new Set([...read, ...names]) : read;
  const count = depth > 1 && chance.chance(0.85) ? chance.whole(1, 2) : 0;
  return {
    names,
    type,
    work: chance.whole(0, 30),
    inner: Array.from({ length: count }, () => randomPlan(chance, depth - 1, below)),
    parallel: chance.chance(0.4),
  };
}

function randomLocks(chance: SeededRandom, read: ReadonlySet<string>): Pick<Plan, 'names' | 'type'> {
  const draw = chance.next();
  if (draw < 0.12) return { names: [FAIR], type: 'fair' };
  if (draw < 0.2) return { names: [FENCED], type: 'fenced' };
  if (draw < 0.45) {
    const name = chance.pick(READ_WRITE);
    return { names: [name], type: read.has(name) || chance.chance(0.5) ? 'read' : 'write' };
  }
  if (draw < 0.65) return { names: [chance.pick(SEVERAL)], type: 'permits' };
  const names = PLAIN.filter(() => chance.chance(0.4));
  return { names: draw < 0.75 && names.length > 1 ? names : [chance.pick(PLAIN)], type: 'reentrant' };
}
