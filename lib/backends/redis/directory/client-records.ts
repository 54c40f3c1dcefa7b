import { isClientId, parseClientRecord } from '../../directory/client-record.js';
import { agedRecord, type ClientRecord } from '../../lock-backend.js';
import type { ScriptContext } from '../calls/script-context.js';
import { clientList, clientRecord } from '../lock-keys.js';
import { arrayOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';

/** The fields of a record. `at` is the server's time when it was written. */
const FIELDS = [
  'at',
  'application',
  'host',
  'pid',
  'version',
  'since',
  'held',
  'waiting',
  'longestWait',
  'holds',
  'waits',
  'blockedAt',
  'blockedSince',
] as const;
/** In bytes. 20 holds with the longest names take less. */
const LONGEST_VALUE = String(256 * 1024);
/** At most this many records are read, beginning with the latest. */
const MOST_CLIENTS = 10_000;

/**
 * Writes the record of a client, and adds the client to the list of clients. On a cluster, these are on different
 * nodes.
 */
export async function writeClient(record: ClientRecord, lifetime: number, { notes }: ScriptContext): Promise<void> {
  const { clientId } = record;
  const { holds, waits, clientId: _, ...fields } = record;
  const texts = { ...fields, holds: JSON.stringify(holds), waits: JSON.stringify(waits) };
  const pairs = Object.entries(texts).flatMap(([field, value]) => [field, String(value)]);
  await Promise.all([
    notes.call(scripts['write-client-1'], [clientRecord(clientId)], [String(lifetime), ...pairs]),
    notes.call(scripts['index-client-1'], [clientList], [clientId, String(lifetime)]),
  ]);
}

/** Notes in the record of another thread's client that its event loop has been blocked for so many milliseconds. */
export async function noteBlock(
  clientId: string,
  blockedFor: number,
  lifetime: number,
  { notes }: ScriptContext,
): Promise<void> {
  await Promise.all([
    notes.call(scripts['note-block-1'], [clientRecord(clientId)], [String(Math.round(blockedFor)), String(lifetime)]),
    notes.call(scripts['index-client-1'], [clientList], [clientId, String(lifetime)]),
  ]);
}

export async function readClients({ notes, connection }: ScriptContext): Promise<readonly string[]> {
  const clients = await notes.call(scripts['list-clients-1'], [clientList], []);
  return arrayOf(clients, connection.description).filter(isClientId).slice(-MOST_CLIENTS);
}

/** @returns undefined if there is no record, or one that no version of this library writes */
export async function readClient(
  clientId: string,
  { notes, connection }: ScriptContext,
): Promise<ClientRecord | undefined> {
  if (!isClientId(clientId)) return undefined;
  const reply = await notes.call(scripts['read-client-1'], [clientRecord(clientId)], [LONGEST_VALUE, ...FIELDS]);
  const [now, ...values] = arrayOf(reply, connection.description);
  const texts = new Map<string, string>(
    FIELDS.flatMap((field, n) => (typeof values[n] === 'string' ? [[field, values[n]]] : [])),
  );
  if (texts.size === 0) return undefined;
  const number = (field: string) => (texts.has(field) ? Number(texts.get(field)) : undefined);
  const record = parseClientRecord({
    clientId,
    application: texts.get('application'),
    host: texts.get('host'),
    pid: number('pid'),
    version: texts.get('version'),
    since: number('since'),
    held: number('held'),
    waiting: number('waiting'),
    longestWait: number('longestWait'),
    holds: parseJson(texts.get('holds')),
    waits: parseJson(texts.get('waits')),
    // A record that was written later is a sign of life.
    blockedFor:
      (number('blockedAt') ?? 0) > (number('at') ?? 0) ? Number(now) - (number('blockedSince') ?? 0) : undefined,
  });
  const age = Number(now) - Number(texts.get('at'));
  return record && agedRecord(record, Math.max(0, age || 0));
}

/** @returns null for a text that is not JSON */
function parseJson(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return null;
  }
}
