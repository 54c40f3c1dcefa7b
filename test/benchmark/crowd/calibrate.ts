import type { Costs } from '../../chaos/simulation/crowd/modelled-server.js';
import type { CrowdFigures, Spent } from '../../chaos/simulation/crowd/waiting-crowd.js';

/**
 * How much CPU time a script call, a message and a PING take on this machine. Computed from two real crowds, whose
 * hand-overs consist of different numbers of them.
 *
 * @param roundTrip of a PING, in milliseconds
 */
export function costsOf(small: CrowdFigures, large: CrowdFigures, roundTrip: number): Costs {
  const [few, many] = [small.steady.each, large.steady.each];
  // A script call is executed and answered. A PING costs one write for its execution and one for its answer.
  const writes = ({ commands, messages, pings }: Spent) => commands + messages + 2 * pings;
  const reads = ({ messages, pings }: Spent) => messages + pings;
  const [command, write] = solve([few.commands, writes(few), few.server], [many.commands, writes(many), many.server]);
  const [answer, message] = solve([few.commands, reads(few), few.clients], [many.commands, reads(many), many.clients]);
  return { latency: Math.max(0, roundTrip / 2 - write), command, write, message, answer };
}

type Equation = readonly [a: number, b: number, sum: number];

/** The x and y of a·x + b·y = sum, by Cramer's rule. */
function solve([a, b, sum]: Equation, [c, d, other]: Equation): readonly [x: number, y: number] {
  const determinant = a * d - b * c;
  return [(sum * d - b * other) / determinant, (a * other - sum * c) / determinant];
}
