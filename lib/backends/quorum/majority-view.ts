import type { LockState } from '../lock-requests.js';
import { majorityOf } from './collect-replies.js';

/** Leases whose ends differ by less, in ms, count as the same. */
const SAME_TIME = 100;

/**
 * The state of a lock as a majority sees it. Owners that only a minority knows belong to attempts that are under way or
 * have failed, unless nodes that have not answered might know them, too.
 */
export function majorityView(states: readonly LockState[], nodes: number): LockState {
  const majority = majorityOf(nodes);
  const leases = new Map<string, number[]>();
  for (const { owner, remaining } of states.flatMap(({ owners }) => owners))
    leases.set(owner, [...(leases.get(owner) ?? []), fromLimit(remaining)]);
  const owners = [...leases]
    .filter(([, remaining]) => remaining.length >= majority)
    .map(([owner, remaining]) => ({ owner, remaining: toLimit(largest(majority, remaining)) }));
  const unanswered = nodes - states.length;
  const possible = [...leases].filter(([, { length }]) => length < majority && length + unanswered >= majority);
  const agreeing = states.filter((state) => owners.some(({ owner }) => ownersOf(state).includes(owner)));
  const tokens = states.flatMap(({ token }) => token ?? []);
  return {
    mode: mostCommon(agreeing.map(({ mode }) => mode)) ?? 'free',
    owners,
    ...(possible.length > 0 && { possibleOwners: possible.map(([owner]) => owner) }),
    queue: [],
    token: tokens.length === 0 ? undefined : largest(Math.min(majority, tokens.length), tokens),
  };
}

/**
 * Whether two nodes agree on a lock: its leases end at the same time, except for the time that commands were under way.
 */
export function sameView(one: LockState, other: LockState): boolean {
  if (one.mode !== other.mode || one.token !== other.token || one.owners.length !== other.owners.length) return false;
  const ends = new Map(other.owners.map(({ owner, remaining }) => [owner, remaining]));
  return one.owners.every(({ owner, remaining }) => Math.abs((ends.get(owner) ?? Number.NaN) - remaining) < SAME_TIME);
}

function ownersOf({ owners }: LockState): string[] {
  return owners.map(({ owner }) => owner).sort();
}

/** The n-th largest value: n of them are at least as large. */
export function largest(n: number, values: readonly number[]): number {
  return [...values].sort((a, b) => b - a)[n - 1];
}

export function mostCommon<T>(values: readonly T[]): T | undefined {
  const counts = new Map<T, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one)[0]?.[0];
}

/** The port uses −1 for a lease without an end. */
export function fromLimit(remaining: number): number {
  return remaining < 0 ? Number.POSITIVE_INFINITY : remaining;
}

export function toLimit(remaining: number): number {
  return remaining === Number.POSITIVE_INFINITY ? -1 : remaining;
}
