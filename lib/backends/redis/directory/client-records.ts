import { agedRecord, type ClientRecord } from '../../lock-backend.js';
import type { ScriptContext } from '../calls/script-context.js';
import { clientList, clientRecord } from '../lock-keys.js';
import { listOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';

/** Keeps the record of a client, and the client in the list of clients. In a cluster they are on different nodes. */
export async function writeClient(record: ClientRecord, lifetime: number, { single }: ScriptContext): Promise<void> {
  const { clientId } = record;
  const { holds, waits, clientId: _, ...fields } = record;
  const texts = { ...fields, holds: JSON.stringify(holds), waits: JSON.stringify(waits) };
  const pairs = Object.entries(texts).flatMap(([field, value]) => [field, String(value)]);
  await Promise.all([
    single.call(scripts['write-client-1'], [clientRecord(clientId)], [String(lifetime), ...pairs]),
    single.call(scripts['index-client-1'], [clientList], [clientId, String(lifetime)]),
  ]);
}

export async function readClients({ single, connection }: ScriptContext): Promise<readonly string[]> {
  const clients = await single.call(scripts['list-clients-1'], [clientList], []);
  return listOf(clients, connection.description).map(String);
}

/** @returns undefined where there is no record, or one that no version of this library writes */
export async function readClient(
  clientId: string,
  { single, connection }: ScriptContext,
): Promise<ClientRecord | undefined> {
  const reply = await single.call(scripts['read-client-1'], [clientRecord(clientId)], []);
  const [now, ...pairs] = listOf(reply, connection.description).map(String);
  const fields = new Map(pairs.flatMap((name, n) => (n % 2 === 0 ? [[name, pairs[n + 1]] as const] : [])));
  if (fields.size === 0) return undefined;
  const text = (name: string) => fields.get(name) ?? '';
  const number = (name: string) => Number(text(name)) || 0;
  const record: ClientRecord = {
    clientId,
    application: text('application'),
    host: text('host'),
    pid: number('pid'),
    version: text('version'),
    since: number('since'),
    held: number('held'),
    waiting: number('waiting'),
    longestWait: number('longestWait'),
    holds: parseList(text('holds')),
    waits: parseList(text('waits')),
  };
  return agedRecord(record, Math.max(0, Number(now) - number('at')));
}

function parseList(text: string): never[] {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? (list.filter((item) => typeof item === 'object' && item !== null) as never[]) : [];
  } catch {
    return [];
  }
}
