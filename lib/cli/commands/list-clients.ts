import type { LockClient } from '../../service/lock-client.js';
import { EXIT } from '../command-error.js';
import { durationText } from '../text/duration-text.js';
import { table } from '../text/table.js';
import type { CommandContext } from './command.js';

const TITLES = ['APPLICATION', 'VERSION', 'HOST', 'PID', 'UP', 'HOLDS', 'WAITING', 'LONGEST WAIT', 'BLOCKED', 'CLIENT'];

/** `clients`: the processes that use locks, starting with the one that has waited longest. */
export async function listClients({ locks, output }: CommandContext): Promise<number> {
  const clients = [...(await locks.clients())].sort(byWait);
  const rows = clients.map(toRow);
  const lines = rows.length === 0 ? ['No process has held a lock or waited for one lately.'] : table(TITLES, rows);
  output.result({ clients }, lines);
  return EXIT.ok;
}

function byWait(one: LockClient, other: LockClient): number {
  return other.longestWait - one.longestWait || (one.application < other.application ? -1 : 1);
}

function toRow(client: LockClient): string[] {
  const { application, version, host, pid, since, held, waiting, longestWait, blockedFor, clientId } = client;
  return [
    application,
    version || '?',
    host,
    String(pid),
    durationText(Math.max(0, Date.now() - since)),
    String(held),
    String(waiting),
    waiting > 0 ? durationText(longestWait) : '-',
    blockedFor === undefined ? '-' : durationText(blockedFor),
    clientId,
  ];
}
