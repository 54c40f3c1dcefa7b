import { permitsOf } from './plans.js';
import type { FlowEvent } from './run-plans.js';

/** An acquisition that waits, or holds its locks. */
interface Flow {
  readonly id: string;
  readonly parent: Flow | undefined;
  readonly names: readonly string[];
  readonly type: string;
  readonly since: number;
  holds: boolean;
  /** Whether code around it has begun another acquisition since. Such a wait may be refused before later ones. */
  isBranch: boolean;
  /** The last time at which it was the latest member of a deadlock. */
  lastInOwnDeadlock: number;
  /** Since when it has certainly been the latest member of a deadlock. */
  stuckSince: number | undefined;
}

/** The problems and the statistics of a run. */
export interface Verdict {
  readonly problems: readonly string[];
  readonly refused: number;
  /** The duration of the longest deadlock whose beginning is known, in ms. */
  readonly longest: number;
}

/**
 * Which waits count: all possible ones, or only certain ones. It is not known for which of several names a caller
 * waits, nor whether a waiting writer blocks a reader.
 */
type Certainty = 'certainly' | 'perhaps';

/**
 * Judges a run by the wait-for graph at each of its events. Every refused caller must have been the latest member of a
 * deadlock, or a branch in it, and no deadlock may last too long.
 *
 * @param allowed.afterwards a refusal may arrive this many ms after another refusal has ended its deadlock
 * @param allowed.apart waits that began within this many ms count as simultaneous
 * @param allowed.longest how long a deadlock may last, in ms
 */
export function judge(
  events: readonly FlowEvent[],
  allowed: { readonly afterwards: number; readonly apart: number; readonly longest: number },
): Verdict {
  const flows = new Map<string, Flow>();
  const problems: string[] = [];
  let refused = 0;
  let longest = 0;

  const inspect = (time: number) => {
    const waits = [...flows.values()].filter(({ holds }) => !holds);
    const certain = waits.filter(({ names }) => names.length === 1);
    for (const wait of waits) {
      // It is not known when a caller of several names began to wait for the busy one.
      const rivals =
        wait.names.length > 1 || wait.isBranch
          ? waits
          : waits.filter(({ since }) => since <= wait.since + allowed.apart);
      if (isInDeadlock(wait, rivals, flows)) wait.lastInOwnDeadlock = time;
      const earlier = certain.filter(({ since }) => since <= wait.since);
      if (!isInCertainDeadlock(wait, earlier, flows)) wait.stuckSince = undefined;
      else wait.stuckSince ??= time;
      const stuck = wait.stuckSince === undefined ? 0 : time - wait.stuckSince;
      longest = Math.max(longest, stuck);
      if (stuck > allowed.longest) problems.push(`${wait.id} has waited in a deadlock for ${Math.round(stuck)} ms`);
    }
  };

  for (const event of [...events].sort((a, b) => a.time - b.time)) {
    inspect(event.time); // the state before this event
    const { id, time } = event;
    const flow = flows.get(id);
    if (event.kind === 'wants') {
      const { names, type, parent } = event;
      const around = parent === undefined ? undefined : flows.get(parent);
      for (const other of flows.values()) if (around !== undefined && isAround(around, other)) other.isBranch = true;
      const none = Number.NEGATIVE_INFINITY;
      const made = {
        id,
        names,
        type,
        parent: around,
        since: time,
        holds: false,
        isBranch: false,
        lastInOwnDeadlock: none,
      };
      flows.set(id, { ...made, stuckSince: undefined });
    } else if (event.kind === 'got') {
      (flow as Flow).holds = true;
    } else {
      flows.delete(id);
      if (event.kind === 'refused') {
        refused++;
        if (time - (flow as Flow).lastInOwnDeadlock > allowed.afterwards)
          problems.push(`${id} was refused for a deadlock of ${event.cycle.join(' → ')} that did not exist`);
      }
    }
    inspect(time);
  }
  for (const { id, holds } of flows.values()) problems.push(`${id} ${holds ? 'holds' : 'waits'} at the end`);
  return { problems: [...new Set(problems)], refused, longest };
}

/** Whether a wait leads back to itself, by way of those of these waits that can never end. */
function isInDeadlock(start: Flow, waits: readonly Flow[], flows: ReadonlyMap<string, Flow>): boolean {
  const blocked = blockedOf(waits, flows, 'perhaps');
  return isInCycle(start, blocked, (wait, other) => heldAround(wait, other, flows, 'perhaps').length > 0);
}

function isInCertainDeadlock(start: Flow, waits: readonly Flow[], flows: ReadonlyMap<string, Flow>): boolean {
  const suffices = (wait: Flow, other: Flow) =>
    !wantsOneOfSeveral(wait) && heldAround(wait, other, flows, 'certainly').length > 0;
  if (isInCycle(start, waits, suffices)) return true;
  const blocked = blockedOf(waits, flows, 'certainly');
  const others = blocked.filter((wait) => wait !== start);
  return blocked.includes(start) && blockedOf(others, flows, 'certainly').length === 0;
}

/** Those of these waits that never end if none of the others of them does. */
function blockedOf(waits: readonly Flow[], flows: ReadonlyMap<string, Flow>, certainty: Certainty): readonly Flow[] {
  const blocked = waits.filter((wait) => {
    const held = waits.flatMap((other) => heldAround(wait, other, flows, certainty));
    return wantsOneOfSeveral(wait) ? new Set(held).size >= permitsOf(wait.names[0]) : held.length > 0;
  });
  return blocked.length === waits.length ? waits : blockedOf(blocked, flows, certainty);
}

function isInCycle(start: Flow, waits: readonly Flow[], waitsFor: (wait: Flow, other: Flow) => boolean): boolean {
  if (!waits.includes(start)) return false;
  const seen = new Set<Flow>();
  const open = [start];
  for (let wait = open.pop(); wait !== undefined; wait = open.pop()) {
    for (const other of waits) {
      if (!waitsFor(wait, other)) continue;
      if (other === start) return true;
      if (!seen.has(other)) open.push(other);
      seen.add(other);
    }
  }
  return false;
}

/** Whether this is a wait for a place of a lock that several hold. Inside such a lock, it is a wait for a share. */
function wantsOneOfSeveral(wait: Flow): boolean {
  return wait.type === 'permits' && outermost(wait) === wait;
}

/** The outermost acquisition of the same lock around this one, or this one. */
function outermost(flow: Flow): Flow {
  let found = flow;
  for (let around = flow.parent; around !== undefined; around = around.parent)
    if (around.names.some((name) => flow.names.includes(name))) found = around;
  return found;
}

/** The acquisitions around `other` that block `wait`. Of those that share one place of a lock, only the outermost. */
function heldAround(wait: Flow, other: Flow, flows: ReadonlyMap<string, Flow>, certainty: Certainty): readonly Flow[] {
  const all: Flow[] = [];
  for (let held = other.parent; held !== undefined; held = held.parent) {
    if (held.holds && !isAround(held, wait) && excludes(held, wait, flows, certainty)) all.push(held);
  }
  return wantsOneOfSeveral(wait) ? all.map(outermost) : all;
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
