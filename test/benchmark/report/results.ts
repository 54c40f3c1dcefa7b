import { mkdirSync, writeFileSync } from 'node:fs';
import type { Contestant } from '../contestants/contestant.js';
import type { Outcome } from '../workloads/workload.js';
import { chart } from './chart.js';
import { description } from './machine.js';
import { markdown, markdownBars } from './table.js';

const FOLDER = new URL('../../../../test/benchmark/', import.meta.url);

const FIGURES = `Each figure is the median over rounds in which the contestants took turns; factors are medians of the rounds' own factors.
Each contestant has three processes in turn, which warm up for two seconds; who does not play is stopped, so that its compiler and timers
take nothing from others, and before each round has 100 ms that do not count, to get up to speed again.
\`sent\` counts what the clients sent, \`executed\` what the server executed, with what scripts call. CPU is that of all processes of
the contestant (client) and of redis-server. A latency lasts from the call of acquire to the end of release, body included.
Overlaps compare the times at which the lock was held, across processes, on one monotonic clock.`;

/** Writes RESULTS.md and results.svg, beside the benchmark's sources. */
export function writeResults(
  machine: string,
  stolen: readonly string[],
  contestants: readonly Contestant[],
  absent: readonly string[],
  outcomes: readonly Outcome[],
): void {
  const text = [
    '# Results',
    '',
    `Written by \`npm run bench\` on ${new Date().toISOString().slice(0, 10)}: ${machine}. One run, one private redis-server on the loopback interface.`,
    '',
    '![Operations per second of each contestant](results.svg)',
    '',
    '## Promises',
    '',
    markdownBars(outcomes.flatMap(({ bars }) => bars)),
    '',
    '## Contestants',
    '',
    'They do not do the same: fencing tokens and the watchdog stay on here in every workload, most peers have neither.',
    '',
    ...contestants.map((contestant) => `- ${description(contestant)}`),
    ...absent.map((line) => `- ${line}`),
    '',
    '## Workloads',
    '',
    FIGURES,
    `CPU time that the machine's host gave to others meanwhile: ${stolen.join(', ')}.`,
    '',
    ...outcomes.flatMap(({ tables }) => tables.map(markdown)),
  ].join('\n');
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(new URL('RESULTS.md', FOLDER), `${text.trimEnd()}\n`);
  const panels = outcomes.flatMap((outcome) => outcome.panels);
  writeFileSync(new URL('results.svg', FOLDER), chart('Acquire and release', panels));
}
