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
  | 'believed late'
  | 'believed of a former place'
  | 'said too long'
  | 'owes a refresh'
  | 'does not listen'
  | 'told another';

/** These make a grant one that its process must not believe, so the step in which it does has to be refused. */
export const OF_BELIEF: readonly Damage[] = [
  'nonce changed',
  'lease too long',
  'believed late',
  'believed of a former place',
];
/** These make a grant one that the server must not give, so that step has to be refused. */
export const OF_GRANT: readonly Damage[] = ['said too long', 'owes a refresh', 'does not listen'];
const IS_REFUSED_THERE: readonly Damage[] = [...OF_BELIEF, ...OF_GRANT, 'told another'];

export interface DamagedTrace {
  readonly trace: AnyTrace;
  /** The number of the step that has to be refused. Undefined: any. */
  readonly refusedAt: number | undefined;
}

/** Whether a trace has a step that can be damaged in this way. */
export function isPossible(damage: Damage, { steps }: AnyTrace): boolean {
  if (damage === 'believed of a former place') return steps.some((step, n) => isBelief(step) && endAfter(steps, n) > 0);
  if (damage === 'owes a refresh') return steps.some((step, n) => isGrant(step) && placeBefore(steps, n) >= 0);
  if (damage === 'told another') return steps.some(({ e }) => e === 'tell');
  if (OF_BELIEF.includes(damage)) return steps.some(isBelief);
  if (OF_GRANT.includes(damage)) return steps.some(({ e, nonce }) => e === 'grant' && nonce !== 0);
  return damage !== 'place changed' || steps.some(isOfPlace);
}

/** A trace with one thing wrong in it, anywhere. */
export function damaged(trace: AnyTrace, damage: Damage, chance: SeededRandom): DamagedTrace {
  const { steps } = trace;
  const copy = [...steps];
  // Steps of other locks matter to this one only as far as they move the clock of tokens. The last step is the check
  // that nothing is left.
  const places = indexes(steps, ({ e }, n) => !e.startsWith('other') && n <= steps.length - 3);
  const at = chance.pick(places);
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
    case 'swapped': {
      where = hasOrder(steps, at) ? at : chance.pick(places.filter((n) => hasOrder(steps, n)));
      [copy[where], copy[where + 1]] = [copy[where + 1], copy[where]];
      break;
    }
    case 'time changed':
      replace(at, { t: copy[at].t + 10 * changeOf(chance) });
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
      break;
    }
    case 'believed of a former place': {
      const belief = chance.pick(indexes(steps, (step, n) => isBelief(step) && endAfter(steps, n) > 0));
      where = endAfter(steps, belief) + 1;
      const { t, cl } = copy[where - 1];
      copy.splice(where, 0, { ...copy[belief], t, cl });
      break;
    }
    case 'said too long': {
      const index = chance.pick(indexes(steps, (step) => isGrant(step) && step.nonce !== 0));
      replace(index, { said: (copy[index].said as number) + Math.abs(changeOf(chance)) });
      break;
    }
    case 'owes a refresh': {
      const grant = chance.pick(indexes(steps, (step, n) => isGrant(step) && placeBefore(steps, n) >= 0));
      const place = placeBefore(steps, grant);
      // More than two thirds of the time for which it is kept have passed.
      replace(place, { waits: Math.ceil(1.25 * (copy[grant].t - copy[place].t)) });
      where = grant;
      break;
    }
    case 'does not listen': {
      const index = chance.pick(indexes(steps, (step) => isGrant(step) && step.nonce !== 0));
      const [process] = copy[index].o as OwnerId;
      replace(index, { listening: (copy[index].listening as number[]).filter((other) => other !== process) });
      break;
    }
    case 'told another': {
      const index = chance.pick(indexes(steps, ({ e }) => e === 'tell'));
      const [, ...others] = copy[index].told as readonly OwnerId[];
      replace(index, { told: others });
    }
  }
  const name = `${trace.name}, ${damage}: step ${where + 1}, ${describe(steps[where])}`;
  return {
    trace: { ...trace, name, steps: copy },
    refusedAt: IS_REFUSED_THERE.includes(damage) ? where + 1 : undefined,
  };
}

/** What two calls do at the same moment has none, nor have two requests that are sent then. */
function hasOrder(steps: readonly Step[], at: number): boolean {
  const [one, other] = [steps[at], steps[at + 1]];
  const areIndependent = isOfCall(one) && isOfCall(other) && (one.call ?? one.id) !== (other.call ?? other.id);
  return !areIndependent || one.t !== other.t;
}

function isOfCall({ e, call }: Step): boolean {
  return e === 'send' || call !== undefined;
}

function isOfPlace({ e }: Step): boolean {
  return e === 'grant' || e === 'keep';
}

function isBelief({ e }: Step): boolean {
  return e === 'believe';
}

function isGrant({ e }: Step): boolean {
  return e === 'grant';
}

/** The step in which the owner that begins in this one is released. 0: it is not. */
function endAfter(steps: readonly Step[], belief: number): number {
  const owner = String(steps[belief].o);
  return Math.max(
    0,
    steps.findIndex(({ e, o }, n) => n > belief && e === 'release' && String(o) === owner),
  );
}

/** The last step that made or kept the place that is granted the lock in this one, if at least 10 ms before it. -1: there is none. */
function placeBefore(steps: readonly Step[], grant: number): number {
  const owner = String(steps[grant].o);
  const isKept = ({ e, ok, kept, waits }: Step) => (e === 'keep' && kept) || (e === 'execute' && !ok && waits);
  const place = indexes(steps, (step, n) => n < grant && Boolean(isKept(step)) && String(step.o) === owner).at(-1);
  return place !== undefined && steps[place].t + 10_000 < steps[grant].t ? place : -1;
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
