import { type Call, Digest, type Instant, type Tenure } from '../chaos/checker/tenure.js';
import type { History } from '../chaos/history.js';

/** What the model in porcupine/main.go knows. Field names are those of its JSON. */
export interface Operation {
  readonly Kind: 'acquire' | 'open' | 'release' | 'end' | 'upset';
  readonly Holder: string;
  /** The owner id of the acquisition. */
  readonly Owner: string;
  readonly Reads: boolean;
  readonly Token: number;
  /** How many may hold the lock according to this acquisition; 0: it holds the lock alone. */
  readonly Most: number;
  readonly Must: boolean;
  readonly Call: number;
  readonly Return: number;
  readonly Process: number;
}

/**
 * The most acquisitions of a lock that stay open. More would cost Porcupine exponential time and change nothing,
 * because an operation that may have taken a lock excludes no order that is possible without it.
 */
const MOST_OPEN = 5;
const NEVER: Instant = { at: Number.POSITIVE_INFINITY, order: 0 };

interface Draft extends Omit<Operation, 'Call' | 'Return' | 'Process'> {
  readonly from: Instant;
  readonly to: Instant;
}

/**
 * A history as operations on a lock that one or n may hold, or readers and writers, by lock. Semaphores are left out,
 * and shares (re-entry) are part of the lease around them. What the history says of an upset, that grants prove nothing
 * until it is over, is kept: such grants are left out, and holders from before may lose the lock at any time from then
 * on.
 */
export function operationsOf(history: History): Map<string, readonly Operation[]> {
  const digest = new Digest(history);
  const locks = new Map<string, Draft[]>();
  const shared = new Set(digest.tenures.filter(({ type }) => !isInModel(type)).map(({ lock }) => lock));
  const withReaders = new Set(digest.tenures.filter(({ type }) => type === 'read').map(({ lock }) => lock));
  const leases = new Map<string, Tenure[]>();
  for (const tenure of digest.tenures) {
    const key = leaseKey(tenure);
    leases.set(key, [...(leases.get(key) ?? []), tenure]);
  }
  for (const call of digest.calls.values()) {
    for (const lock of call.locks) {
      if (shared.has(lock)) continue;
      const drafts = locks.get(lock) ?? [];
      locks.set(lock, drafts);
      const tenure = call.tenures.find((each) => each.lock === lock);
      if (tenure === undefined) {
        const open = drafts.filter(({ Kind }) => Kind === 'open').length;
        const mayBeOpen = call.refused?.error !== 'LockBusyError' && !withReaders.has(lock);
        // One that took no place leaves more room.
        if (mayBeOpen && call.mostHolders === undefined && open < MOST_OPEN) drafts.push(...openAcquisition(call));
        continue;
      }
      const shares = leases.get(leaseKey(tenure)) ?? [];
      if (isShare(tenure, shares, digest) || isDoubtful(tenure)) continue;
      const ofLease = lease(tenure, shares, digest);
      drafts.push(...(tenure.type === 'place' ? withMostRoom(ofLease) : ofLease));
    }
  }
  for (const { lock, now, until } of digest.upsets) {
    for (const [name, drafts] of locks) {
      if ((lock ?? name) !== name) continue;
      drafts.push({
        Kind: 'upset',
        Holder: '',
        Owner: '',
        Reads: false,
        Token: 0,
        Most: 0,
        Must: false,
        from: now,
        to: { at: until, order: 0 },
      });
    }
  }
  return new Map([...locks].filter(([, drafts]) => drafts.length > 0).map(([lock, drafts]) => [lock, ordered(drafts)]));
}

/**
 * Whether it re-entered a lease. A call for several locks may re-enter one of them and acquire the others. The read lock
 * that a writer takes is a separate lease, shared by all readers in its scope.
 */
function isShare(tenure: Tenure, shares: readonly Tenure[], { calls }: Digest): boolean {
  const { lock, owner, type, within } = tenure;
  const outer = within === undefined ? undefined : calls.get(within);
  const held = outer?.tenures.find((each) => each.lock === lock && each.owner === owner);
  return held !== undefined && (held.type === type || shares[0] !== tenure);
}

/**
 * The acquisition, and its release, which comes with the last share. If no release was confirmed, the lease may also
 * end by itself, at the earliest when its holder no longer relied on it: an operation without a caller.
 */
function lease(tenure: Tenure, shares: readonly Tenure[], digest: Digest): Draft[] {
  const { call, owner, token, type, granted, doubt } = tenure;
  const calls = shares.map((share) => digest.calls.get(share.call) as Call);
  const Most = type === 'place' ? (calls[0].mostHolders ?? 1) : 0;
  const common = { Holder: call, Owner: owner, Reads: type === 'read', Token: 0, Most, Must: false };
  const acquired: Draft = { ...common, Kind: 'acquire', Token: token as number, from: calls[0].sent, to: granted };
  if (doubt === undefined && calls.every(({ released }) => released?.outcome === 'released')) {
    const from = latest(calls.map(({ releaseAsked }) => releaseAsked as Instant));
    const at = Math.max(...calls.map(({ released }) => released?.at as number));
    return [acquired, { ...common, Kind: 'release', Must: true, from, to: { at, order: Number.MAX_SAFE_INTEGER } }];
  }
  const deadline = latest(shares.map((share) => ({ at: share.deadline, order: -1 })));
  const ends = [deadline, ...shares.flatMap(({ lost, doubt: since }) => [lost, since?.since])];
  const end = ends.reduce((first, at) => (at === undefined || first!.at < at.at ? first : at)) as Instant;
  const drafts: Draft[] = [
    acquired,
    { ...common, Kind: 'end', from: inTime(end, granted) < 0 ? { ...granted } : { ...end }, to: NEVER },
  ];
  if (calls.every(({ releaseAsked }) => releaseAsked !== undefined)) {
    drafts.push({
      ...common,
      Kind: 'release',
      from: latest(calls.map((each) => each.releaseAsked as Instant)),
      to: NEVER,
    });
  }
  return drafts;
}

/**
 * The lease of a place, from as late to as early as is possible. If there is any order of the operations, there is one
 * with this, because it leaves the most room for others, and tokens of places need no order. Porcupine would try all
 * orders of those that wait.
 */
function withMostRoom([acquired, ...ends]: readonly Draft[]): Draft[] {
  const end = ends.reduce((first, each) => (inTime(each.from, first.from) < 0 ? each : first));
  const now = { ...acquired, from: { ...acquired.to } };
  return [now, { ...end, to: { ...end.from } }];
}

function latest(moments: readonly Instant[]): Instant {
  return { ...moments.reduce((last, moment) => (inTime(last, moment) < 0 ? moment : last)) };
}

/** Nobody knows whether it took the lock, nor when that ends. */
function openAcquisition({ call, sent }: Call): Draft[] {
  const none = { Owner: '', Reads: false, Token: 0, Most: 0, Must: false };
  const common = { ...none, Holder: call, from: sent, to: NEVER };
  return [
    { ...common, Kind: 'open' },
    { ...common, Kind: 'end' },
  ];
}

function isInModel(type: Tenure['type']): boolean {
  return type !== 'permits' && type !== 'latch';
}

/** The same for all shares of one lease. */
function leaseKey({ lock, owner, token }: Tenure): string {
  return `${lock} ${owner} ${token}`;
}

/** Whether it was granted after a disturbance of the backend. */
export function isDoubtful({ doubt, granted }: Tenure): boolean {
  return doubt !== undefined && doubt.since.order < granted.order;
}

/** Many records have the same time, so only their order shows which was first. */
function ordered(drafts: readonly Draft[]): Operation[] {
  const moments = drafts.flatMap(({ from, to }) => [from, to]).sort(inTime);
  const places = new Map(moments.map((moment, index) => [moment, index]));
  return drafts.map(({ from, to, ...draft }, Process) => {
    return {
      ...draft,
      Call: placeOf(places, from),
      Return: to === NEVER ? moments.length : placeOf(places, to),
      Process,
    };
  });
}

function placeOf(places: ReadonlyMap<Instant, number>, moment: Instant): number {
  return places.get(moment) as number;
}

function inTime(one: Instant, other: Instant): number {
  return one.at === other.at ? one.order - other.order : one.at - other.at;
}
