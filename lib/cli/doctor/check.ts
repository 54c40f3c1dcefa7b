import { messageOf } from '../../backends/redis/diagnostics.js';
import type { Server } from '../redis/server.js';

/** The result of one check. */
export interface Finding {
  /** `note`: locks work, but there is something that the user should know. `wrong`: there is a problem. */
  readonly status: 'ok' | 'note' | 'wrong';
  readonly message: string;
  /** What to do. Undefined if the check succeeded. */
  readonly remedy?: string;
}

/** A finding with the name of its check. */
export interface Check extends Finding {
  readonly check: string;
  /** `host:port` of a node of a cluster. Undefined if the finding is about all nodes, or there is one server. */
  readonly node?: string;
}

export function ok(message: string): Finding {
  return { status: 'ok', message };
}

export function note(message: string, remedy: string): Finding {
  return { status: 'note', message, remedy };
}

export function wrong(message: string, remedy: string): Finding {
  return { status: 'wrong', message, remedy };
}

/** Runs a check on each master. It returns one finding if all of them agree, otherwise one for each node. */
export async function onEachMaster(
  check: string,
  masters: readonly Server[],
  examine: (master: Server) => Promise<Finding>,
): Promise<Check[]> {
  const findings = await Promise.all(masters.map((master) => examine(master).catch(unanswered)));
  const [first] = findings;
  if (findings.every(({ message }) => message === first.message)) return [{ check, ...first }];
  return findings.map((finding, n) => ({ check, ...finding, node: masters[n].address }));
}

/** Reads a field of INFO. Undefined if the server does not report it. */
export async function infoOf(master: Server, section: string): Promise<(field: string) => string | undefined> {
  const info = await master.text('info', section);
  return (field) => new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}

function unanswered(error: unknown): Finding {
  const message = messageOf(error);
  return /NOPERM/.test(message)
    ? note(`not known: ${message}`, "see the 'rights' check")
    : wrong(`no answer: ${message}`, 'check this server, and the network to it');
}
