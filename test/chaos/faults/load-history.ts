import type { LoadEvent } from './load.js';

/** One lease, from the moment its body began until nobody may count on it any more. */
export interface HeldSpan {
  readonly process: string;
  readonly name: string;
  readonly shared: boolean;
  readonly token: number;
  readonly from: number;
  readonly to: number;
  /** LockLostError aborted its signal while it ran, or was what the caller was told at the end. */
  readonly told: boolean;
}

/** All that happened to the locks of several processes, in the order of machine time. */
export class LoadHistory {
  private readonly events: LoadEvent[] = [];
  private readonly killed = new Map<string, number>();

  readonly record = (event: LoadEvent): void => {
    this.events.push(event);
  };

  processKilled(process: string, at: number): void {
    this.killed.set(process, at);
  }

  /** What callers were told since `at`, by the name of the error. */
  errors(since = 0): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { what, at, error = '' } of this.events) {
      if (what !== 'told' || at < since) continue;
      const [type = ''] = error.split(':');
      counts.set(type, (counts.get(type) ?? 0) + 1);
    }
    return counts;
  }

  messages(): string[] {
    return this.events.flatMap(({ error }) => (error === undefined ? [] : [error]));
  }

  count(what: LoadEvent['what'], since = 0, process?: string): number {
    return this.events.filter(
      (event) => event.what === what && event.at >= since && (process ?? event.process) === event.process,
    ).length;
  }

  /** When this process first held a lock after `since`. */
  firstHeld(process: string, since: number): number | undefined {
    return this.events.find((event) => event.what === 'holds' && event.at > since && event.process === process)?.at;
  }

  /** The longest time that a name was had by nobody anew, in ms. */
  longestPause(name: string): number {
    const times = this.events.filter((event) => event.what === 'holds' && event.name === name).map(({ at }) => at);
    times.sort((a, b) => a - b);
    return Math.max(0, ...times.slice(1).map((time, i) => time - times[i]));
  }

  spans(): HeldSpan[] {
    return [...this.calls().entries()].flatMap(([, events]) => {
      const held = events.find(({ what }) => what === 'holds');
      if (held === undefined) return [];
      const until = Math.max(...events.map((event) => event.until ?? 0));
      const ends = events.filter(({ what }) => what === 'ends' || what === 'lost').map(({ at }) => at);
      const { process, name, shared, at: from, token = 0 } = held;
      const to = Math.min(until, this.killed.get(process) ?? Number.POSITIVE_INFINITY, ...ends);
      const told = events.some(({ what, error }) => what === 'lost' || /^LockLostError/.test(error ?? ''));
      return [{ process, name, shared, token, from, to, told }];
    });
  }

  /** Pairs of leases that were valid at the same time and exclude each other; the one that began first stands first. */
  overlaps(): [HeldSpan, HeldSpan][] {
    return this.conflicting((one, other) => other.from < one.to);
  }

  /** Pairs of leases that came one after the other while their tokens did not grow. */
  tokensThatShrank(): [HeldSpan, HeldSpan][] {
    return this.conflicting((one, other) => one.to <= other.from && other.token <= one.token);
  }

  /** Calls that have got no answer though their process lived. */
  unanswered(): LoadEvent[] {
    return [...this.calls().values()]
      .filter((events) => !events.some(({ what }) => what === 'served' || what === 'told'))
      .map(([first]) => first)
      .filter(({ process }) => !this.killed.has(process));
  }

  /** Pairs of which not both are readers; compares each with the next hundred, since callers and readers are few. */
  private conflicting(wrong: (one: HeldSpan, other: HeldSpan) => boolean): [HeldSpan, HeldSpan][] {
    const found: [HeldSpan, HeldSpan][] = [];
    for (const spans of grouped(this.spans(), ({ name }) => name).values()) {
      spans.sort((a, b) => a.from - b.from);
      for (const [i, one] of spans.entries()) {
        for (const other of spans.slice(i + 1, i + 101)) {
          if (!(one.shared && other.shared) && wrong(one, other)) found.push([one, other]);
        }
      }
    }
    return found;
  }

  private calls(): Map<string, LoadEvent[]> {
    return grouped(this.events, ({ process, call }) => `${process} ${call}`);
  }
}

function grouped<T>(items: readonly T[], by: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(by(item));
    if (group) group.push(item);
    else groups.set(by(item), [item]);
  }
  return groups;
}
