import type { CrowdFigures } from '../../chaos/simulation/crowd/waiting-crowd.js';
import { type Line, type LinePanel, lineChart } from './line-chart.js';
import { POLLERS } from './pollers.js';
import { type CellFigures, handOvers, type Kind } from './services.js';
import type { Fleet } from './simulated.js';

const NAME = 'nestjs-redis-lock';
const STYLES = ['second', 'third', 'fourth'] as const;
const PEERS = [...POLLERS.map(({ name }) => name), 'redisson'];

/**
 * @param body how long each body holds the lock, in milliseconds
 * @param ours the name of this library among the contestants
 */
export function picture(
  body: number,
  services: readonly CellFigures[],
  fleet: Fleet | undefined,
  ours: string,
): string {
  const panel = (title: string, kind: Kind, simulated: readonly CrowdFigures[] = []): LinePanel => {
    const measured = (name: string) =>
      handOvers(services, (cell) => cell.body === body && cell.kind === kind && !cell.busy, name);
    const peers = PEERS.map((name, i): Line => ({ name, kind: STYLES[i], points: measured(name) }));
    const modelled = simulated.map(({ processes, steady }) => [processes, steady.handOver] as const);
    const lines: readonly Line[] = [
      { name: NAME, kind: 'first', points: measured(ours) },
      ...peers,
      { name: `${NAME}, simulated`, kind: 'apart', points: modelled },
    ];
    return {
      title,
      unit: 'milliseconds from body to body; below: services, logarithmic',
      lines: lines.filter(({ points }) => points.length > 0),
    };
  };
  const numbers = services.filter(({ cell }) => cell.body === body).map(({ cell }) => cell.services);
  const all = new Set([...numbers, ...(fleet?.patient ?? []).map(({ processes }) => processes)]);
  return lineChart(
    `One hot lock, bodies of ${body} ms, more and more services that want it`,
    [...all].sort((a, b) => a - b),
    [panel('Callers that give up', 'giving-up', fleet?.givingUp), panel('Patient callers', 'patient', fleet?.patient)],
  );
}
