import type { SeededRandom } from '../../support/seeded-random.js';
import type { OwnerId, Step } from './steps.js';
import type { AnyTrace } from './tla-module.js';

export type Damage =
  | 'dropped'
  | 'doubled'
  | 'swapped'
  | 'time changed'
  | 'token changed'
  | 'place changed'
  | 'owner changed'
  | 'answer changed'
  | 'holder changed'
  | 'target changed'
  | 'call changed'
  | 'nonce changed'
  | 'lease too long'
  | 'believed late';

/** These make a grant one that its process must not believe, so the step in which it does has to be refused. */
const OF_BELIEF: readonly Damage[] = ['nonce changed', 'lease too long', 'believed late'];

export interface DamagedTrace {
  readonly trace: AnyTrace;
  /** The number of the step that has to be refused. Undefined: any. */
  readonly refusedAt: number | undefined;
}

/** Whether a trace has a step that can be damaged in this way. */
export function isPossible(damage: Damage, { steps }: AnyTrace): boolean {
  if (OF_BELIEF.includes(damage)) return steps.some(({ e }) => e === 'believe');
  return damage !== 'place changed' || steps.some(isOfPlace);
}

/** A trace with one thing wrong in it, anywhere. */
export function damaged(trace: AnyTrace, damage: Damage, chance: SeededRandom): DamagedTrace {
  const { steps } = trace;
  const copy = [...steps];
  // Steps of other locks matter to this one only as far as they move the clock of tokens. The last step is the check
  // that nothing is left.
  const at = chance.pick(indexes(steps, ({ e }, n) => !e.startsWith('other') && n <= steps.length - 3));
  let where = at;
  const replace = (index: number, fields: Partial<Step>) => {
    where = index;
    copy[index] = { ...copy[index], ...fields } as Step;
  };
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
      replace(at, { t: copy[at].t + changeOf(chance) });
      break;
    case 'token changed': {
      const index = chance.pick(indexes(steps, (step) => 'token' in step));
      replace(index, { token: (copy[index].token as number) + changeOf(chance) });
      break;
    }
    case 'place changed': {
      const index = chance.pick(indexes(steps, isOfPlace));
      const { e, kept, o } = copy[index];
      replace(index, e === 'keep' ? { kept: !kept } : { o: otherOwner(trace, o as OwnerId, chance) });
      break;
    }
    case 'owner changed': {
      const index = chance.pick(indexes(steps, ({ o }) => typeof o === 'number' && o > 0));
      replace(index, { o: otherOwner(trace, copy[index].o as number, chance) });
      break;
    }
    case 'answer changed': {
      const index = chance.pick(indexes(steps, ({ e, ok }) => e === 'execute' && ok !== undefined));
      replace(index, { ok: !copy[index].ok });
      break;
    }
    case 'holder changed': {
      const index = chance.pick(indexes(steps, ({ e }) => e === 'execute'));
      const [first, ...others] = copy[index].holders as number[];
      replace(index, { holders: first === undefined ? [1] : others });
      break;
    }
    case 'target changed': {
      const index = chance.pick(indexes(steps, ({ n }) => n !== undefined));
      replace(index, { n: ((copy[index].n as number) % 3) + 1 });
      break;
    }
    case 'call changed': {
      const index = chance.pick(indexes(steps, ({ c }) => typeof c === 'number' && c > 0));
      const others = new Set(steps.map(({ c }) => (c ?? 0) as number));
      others.delete(copy[index].c as number);
      replace(index, { c: chance.pick([...others]) });
      break;
    }
    case 'nonce changed': {
      const belief = chance.pick(indexes(steps, isBelief));
      const owner = String(steps[belief].o);
      const isOfGrant = ({ e, o, nonce }: Step) =>
        (e === 'acquire' || e === 'refresh') && String(o) === owner && nonce === steps[belief].nonce;
      const [request] = indexes(steps, (step, n) => n < belief && isOfGrant(step));
      // Either nobody was granted the lock with this nonce, or the process has sent no request with it.
      const index = chance.chance(0.5) ? belief : request;
      replace(index, { nonce: chance.pick(noncesOf(steps).filter((nonce) => nonce !== steps[index].nonce)) });
      where = belief;
      break;
    }
    case 'lease too long': {
      const index = chance.pick(indexes(steps, isBelief));
      replace(index, { until: (copy[index].until as number) + 10 * Math.abs(changeOf(chance)) });
      break;
    }
    case 'believed late': {
      where = chance.pick(indexes(steps, isBelief));
      const { o, until, cl } = steps[where];
      const [process] = o as OwnerId;
      const delay = (until as number) - cl[process - 1] + Math.abs(changeOf(chance));
      // From then on, everything is as much later.
      for (let index = where; index < copy.length; index++) copy[index] = delayed(copy[index], delay);
    }
  }
  const name = `${trace.name}, ${damage}: step ${where + 1}, ${describe(steps[where])}`;
  return { trace: { ...trace, name, steps: copy }, refusedAt: OF_BELIEF.includes(damage) ? where + 1 : undefined };
}

function isOfPlace({ e }: Step): boolean {
  return e === 'grant' || e === 'keep';
}

function isBelief({ e }: Step): boolean {
  return e === 'believe';
}

/** The nonces of a trace, and one that is nobody's. */
function noncesOf(steps: readonly Step[]): readonly number[] {
  const nonces = new Set(steps.flatMap(({ nonce = 0 }) => (nonce === 0 ? [] : [nonce as number])));
  return [...nonces, Math.max(...nonces) + 1];
}

function delayed(step: Step, delay: number): Step {
  return { ...step, t: step.t + delay, cl: step.cl.map((time) => time + delay) };
}

function describe({ e, kind, o }: Step): string {
  return [e, kind, o].filter((part) => part !== undefined).join(' ');
}

function indexes(steps: readonly Step[], isWanted: (step: Step, n: number) => boolean): readonly number[] {
  return steps.flatMap((step, n) => (isWanted(step, n) ? [n] : []));
}

function otherOwner<O extends number | OwnerId>(trace: AnyTrace, owner: O, chance: SeededRandom): O {
  const all = new Map(trace.steps.flatMap(({ o }) => (o === undefined || o === 0 ? [] : [[String(o), o as O]])));
  all.delete(String(owner));
  return chance.pick([...all.values()]);
}

/** By 1 µs or a second, or anything between, more or less. */
function changeOf(chance: SeededRandom): number {
  const size = Math.round(10 ** chance.between(0, 6));
  return chance.chance(0.5) ? size : -size;
}
