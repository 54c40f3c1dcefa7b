import { messageOf } from '../../backends/redis/connection/redis-errors.js';
import type { Server } from '../redis/server.js';

/** What one check has found. */
export interface Finding {
  /** `note`: locks work, but somebody should know. `wrong`: change it. */
  readonly status: 'ok' | 'note' | 'wrong';
  readonly message: string;
  /** What to do, unless all is well. */
  readonly remedy?: string;
}

/** A finding with the name of its check. */
export interface Check extends Finding {
  readonly check: string;
  /** `host:port` of a node of a cluster; undefined: it holds for all of them, or there is one server. */
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

/** Examines each master: one finding where all of them give the same, else one a node. */
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

/** A field of INFO; undefined where the server does not tell it. */
export async function infoOf(master: Server, section: string): Promise<(field: string) => string | undefined> {
  const info = await master.text('info', section);
  return (field) => new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}

function unanswered(error: unknown): Finding {
  const message = messageOf(error);
  return /NOPERM/.test(message)
    ? note(`not known: ${message}`, 'see the check of rights')
    : wrong(`no answer: ${message}`, 'look at this server, and at the network to it');
}
