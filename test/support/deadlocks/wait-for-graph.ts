import type { FlowEvent } from './run-plans.js';

/** An acquisition that waits, or holds its locks. */
interface Flow {
  readonly id: string;
  readonly parent: Flow | undefined;
  readonly names: readonly string[];
  readonly type: string;
  readonly since: number;
  holds: boolean;
  /** When it was last seen to wait in a circle in which it began last. */
  lastInOwnCycle: number;
  /** Since when it waits in a circle in which it certainly began last. */
  stuckSince: number | undefined;
}

/** What is wrong with a run, and what was seen in it. */
export interface Verdict {
  readonly problems: readonly string[];
  readonly refused: number;
  /** How long the longest deadlock lasted, in ms, as far as it is known when it began. */
  readonly longest: number;
}

/**
 * Which waits count: all that may be there, or those that certainly are. It is not known for which of several names a
 * caller waits, nor whether a waiting writer holds up a reader.
 */
type Certainty = 'certainly' | 'perhaps';

/**
 * The wait-for graph as it was at each event of a run. Nobody who was refused must have been outside of all circles, or
 * have begun before another member of each; and no circle must last.
 *
 * @param allowed.afterwards a refusal may come this many ms after its circle was broken by another one
 * @param allowed.apart waits that began this many ms apart count as begun together
 * @param allowed.longest how long a circle may last
 */
export function judge(
  events: readonly FlowEvent[],
  allowed: { readonly afterwards: number; readonly apart: number; readonly longest: number },
): Verdict {
  const flows = new Map<string, Flow>();
  const problems: string[] = [];
  let refused = 0;
  let longest = 0;

  const look = (time: number) => {
    const waits = [...flows.values()].filter(({ holds }) => !holds);
    const certain = waits.filter(({ names }) => names.length === 1);
    for (const wait of waits) {
      // When a caller of several names began to wait for the one that is busy is not known here.
      const rivals = wait.names.length > 1 ? waits : waits.filter(({ since }) => since <= wait.since + allowed.apart);
      if (isInCycle(wait, rivals, flows, 'perhaps')) wait.lastInOwnCycle = time;
      const earlier = certain.filter(({ since }) => since <= wait.since);
      if (!isInCycle(wait, earlier, flows, 'certainly')) wait.stuckSince = undefined;
      else wait.stuckSince ??= time;
      const stuck = wait.stuckSince === undefined ? 0 : time - wait.stuckSince;
      longest = Math.max(longest, stuck);
      if (stuck > allowed.longest) problems.push(`${wait.id} has waited in a circle for ${Math.round(stuck)} ms`);
    }
  };

  for (const event of [...events].sort((a, b) => a.time - b.time)) {
    look(event.time); // as it was until now
    const { id, time } = event;
    const flow = flows.get(id);
    if (event.kind === 'wants') {
      const { names, type, parent } = event;
      const around = parent === undefined ? undefined : flows.get(parent);
      const none = Number.NEGATIVE_INFINITY;
      const made = { id, names, type, parent: around, since: time, holds: false, lastInOwnCycle: none };
      flows.set(id, { ...made, stuckSince: undefined });
    } else if (event.kind === 'got') {
      (flow as Flow).holds = true;
    } else {
      flows.delete(id);
      if (event.kind === 'refused') {
        refused++;
        if (time - (flow as Flow).lastInOwnCycle > allowed.afterwards)
          problems.push(`${id} was refused for a deadlock of ${event.cycle.join(' → ')} that there was not`);
      }
    }
    look(time);
  }
  for (const { id, holds } of flows.values()) problems.push(`${id} ${holds ? 'holds' : 'waits'} at the end`);
  return { problems: [...new Set(problems)], refused, longest };
}

function isInCycle(
  start: Flow,
  waits: readonly Flow[],
  flows: ReadonlyMap<string, Flow>,
  certainty: Certainty,
): boolean {
  if (!waits.includes(start)) return false;
  const seen = new Set<Flow>();
  const open = [start];
  for (let wait = open.pop(); wait !== undefined; wait = open.pop()) {
    for (const other of waits) {
      if (!waitsFor(wait, other, flows, certainty)) continue;
      if (other === start) return true;
      if (!seen.has(other)) open.push(other);
      seen.add(other);
    }
  }
  return false;
}

/** Whether something that is held around `other` keeps `wait` waiting. */
function waitsFor(wait: Flow, other: Flow, flows: ReadonlyMap<string, Flow>, certainty: Certainty): boolean {
  for (let held = other.parent; held !== undefined; held = held.parent) {
    if (held.holds && !isAround(held, wait) && excludes(held, wait, flows, certainty)) return true;
  }
  return false;
}

function excludes(held: Flow, wait: Flow, flows: ReadonlyMap<string, Flow>, certainty: Certainty): boolean {
  const shared = held.names.filter((name) => wait.names.includes(name));
  if (shared.length === 0) return false;
  if (held.type !== 'read' || wait.type !== 'read') return true;
  // A reader shares the lock, unless a writer waits for it.
  const isWriter = ({ holds, type, names }: Flow) =>
    !holds && type === 'write' && shared.some((n) => names.includes(n));
  return certainty === 'perhaps' && [...flows.values()].some(isWriter);
}

function isAround(outer: Flow, flow: Flow): boolean {
  for (let around = flow.parent; around !== undefined; around = around.parent) if (around === outer) return true;
  return false;
}
