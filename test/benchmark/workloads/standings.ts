import { bare } from '../contestants/bare.js';
import type { Contestant } from '../contestants/contestant.js';
import { PEERS } from '../contestants/contestants.js';
import { floor } from '../contestants/floor.js';
import { inBackground, thisLibrary } from '../contestants/this-library.js';
import { median, sum } from '../measure/statistics.js';
import { count, factor, figure } from '../report/figures.js';
import type { Contest, Round, Rounds } from './contest.js';
import type { Panel, Table } from './workload.js';

/** A column of a table: the figure that it shows, and how. */
interface Column {
  readonly title: string;
  readonly of: keyof Round;
  readonly show: (value: number) => string;
  /** Whether it is not compared by a factor. */
  readonly absolute?: boolean;
}

const COSTS: readonly Column[] = [
  { title: 'operations/s', of: 'opsPerSecond', show: count },
  { title: 'p50 µs', of: 'p50', show: figure },
  { title: 'p99 µs', of: 'p99', show: figure },
  { title: 'commands sent/op', of: 'sent', show: figure },
  { title: 'commands executed/op', of: 'executed', show: figure },
  { title: 'server CPU µs/op', of: 'serverCpu', show: figure },
  { title: 'client CPU µs/op', of: 'clientCpu', show: figure },
];

const CONTENTION: readonly Column[] = [
  { title: 'overlaps', of: 'overlaps', show: count, absolute: true },
  { title: 'Jain of callers', of: 'jainOfCallers', show: (value) => value.toFixed(3), absolute: true },
  { title: 'loop delay p99 ms', of: 'loopDelay', show: figure, absolute: true },
];

const PROCESSES: readonly Column[] = [
  { title: 'Jain of processes', of: 'jainOfProcesses', show: (value) => value.toFixed(3), absolute: true },
  { title: 'longest wait ms', of: 'longestWait', show: figure, absolute: true },
];

/** The results of the contestants in one contest. */
export class Standings {
  constructor(
    private readonly contest: Contest,
    private readonly rounds: Rounds,
    private readonly us: Contestant = thisLibrary,
  ) {}

  /** Medians over the rounds; sums or maxima for overlaps, disorder and the longest wait. */
  of(contestant: Contestant): Round | undefined {
    const rounds = this.rounds.get(contestant);
    if (rounds === undefined) return undefined;
    const values = (field: keyof Round) => rounds.map((round) => round[field]);
    const fields = Object.keys(rounds[0]) as (keyof Round)[];
    const medians = Object.fromEntries(fields.map((field) => [field, median(values(field))])) as Record<
      keyof Round,
      number
    >;
    return {
      ...medians,
      overlaps: sum(values('overlaps')),
      outOfOrder: sum(values('outOfOrder')),
      longestWait: Math.max(...values('longestWait')),
    };
  }

  get ours(): Round | undefined {
    return this.of(this.us);
  }

  /** The peer with the most operations. */
  get bestPeer(): Contestant | undefined {
    const speed = (peer: Contestant) => this.of(peer)?.opsPerSecond ?? 0;
    const [best] = PEERS.filter((peer) => this.rounds.has(peer)).sort((a, b) => speed(b) - speed(a));
    return best;
  }

  /**
   * Our figure divided by theirs: the median of the ratios of the rounds, in each of which both had the same machine.
   * NaN if one is missing.
   */
  ratio(field: keyof Round, other: Contestant | undefined): number {
    const ours = this.rounds.get(this.us);
    const theirs = other && this.rounds.get(other);
    if (ours === undefined || theirs === undefined) return Number.NaN;
    const both = Math.min(ours.length, theirs.length);
    return median(ours.slice(0, both).map((round, i) => round[field] / theirs[i][field]));
  }

  table(title: string, notes: readonly string[] = []): Table {
    const columns = this.columns;
    const rows = [...this.rounds.keys()].sort(asListed).map((contestant) => {
      const figures = this.of(contestant) as Round;
      return [contestant.name, ...columns.map(({ of, show }) => show(figures[of]))];
    });
    for (const [name, other] of [
      ['floor', floor],
      [this.bestPeer?.name, this.bestPeer],
    ] as const) {
      if (other === undefined || !this.rounds.has(other)) continue;
      const cells = columns.map(({ of, absolute }) => (absolute ? '' : factor(this.ratio(of, other))));
      rows.push([`ours ÷ ${name}`, ...cells]);
    }
    return { title, columns: ['', ...columns.map((column) => column.title)], rows, notes };
  }

  panel(title: string): Panel {
    const values = [...this.rounds.keys()]
      .sort(asListed)
      .map((contestant) => ({ name: contestant.name, value: this.of(contestant)?.opsPerSecond ?? 0 }));
    return { title, unit: 'operations/s', values };
  }

  private get columns(): Column[] {
    const { keys, processes } = this.contest;
    return [...COSTS, ...(keys === 'one' ? CONTENTION : []), ...(processes > 1 ? PROCESSES : [])];
  }
}

function asListed(one: Contestant, other: Contestant): number {
  const order = [thisLibrary, inBackground, floor, ...PEERS, bare];
  return order.indexOf(one) - order.indexOf(other);
}
