import type { Costs } from '../../chaos/simulation/crowd/modelled-server.js';
import type { CrowdFigures } from '../../chaos/simulation/crowd/waiting-crowd.js';

/**
 * What things take on this machine, from the CPU times of two real crowds: what a process more costs is what a message
 * costs, and the rest is what commands cost.
 *
 * @param roundTrip of a PING, in milliseconds
 */
export function costsOf(small: CrowdFigures, large: CrowdFigures, roundTrip: number): Costs {
  const [few, many] = [small.steady.each, large.steady.each];
  const commands = few.commands + few.pings;
  const more = many.messages - few.messages + many.commands + many.pings - commands;
  const write = (many.server - few.server) / more;
  const command = Math.max(0, few.server / commands - write * (1 + few.messages / commands));
  const message = (many.clients - few.clients) / more;
  const answer = Math.max(0, (few.clients - message * few.messages) / commands);
  const latency = Math.max(0.005, (roundTrip - command - write) / 2);
  return { latency, command, write, message, answer };
}
