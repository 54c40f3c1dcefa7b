import type { CrowdFigures } from '../../chaos/simulation/crowd/waiting-crowd.js';
import { lineChart } from './line-chart.js';

/** @param hold how long each body holds the lock, in milliseconds */
export function picture(hold: number, fleet: readonly CrowdFigures[], measured: readonly CrowdFigures[]): string {
  const line = (of: (figures: CrowdFigures) => number, from = fleet) =>
    from.map((figures) => [figures.processes, of(figures)] as const);
  return lineChart(
    `One hot lock, bodies of ${hold} ms, more and more processes that wait for it`,
    fleet.map(({ processes }) => processes),
    [
      {
        title: 'Time from one body to the next',
        unit: 'milliseconds; both axes are logarithmic, to the right: processes',
        lines: [
          { name: 'a fleet', kind: 'first', points: line(({ steady }) => steady.handOver) },
          { name: 'of it, Redis is busy for', kind: 'second', points: line(({ steady }) => steady.each.server) },
          { name: 'the body alone', kind: 'third', points: line(() => hold) },
          {
            name: 'Redis, measured',
            kind: 'measured',
            points: line(({ steady }) => steady.each.server, measured),
          },
        ],
      },
      {
        title: 'What one hand-over costs',
        unit: 'in number; both axes are logarithmic, to the right: processes',
        lines: [
          { name: 'messages', kind: 'first', points: line(({ steady }) => steady.each.messages) },
          { name: 'PINGs', kind: 'second', points: line(({ steady }) => steady.each.pings) },
          { name: 'commands about the lock', kind: 'third', points: line(({ steady }) => steady.each.commands) },
          {
            name: 'commands, measured',
            kind: 'measured',
            points: line(({ steady }) => steady.each.commands, measured),
          },
        ],
      },
    ],
  );
}
