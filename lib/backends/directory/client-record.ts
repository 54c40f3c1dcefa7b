import type { ClientRecord, HoldRecord, WaitRecord } from '../lock-directory.js';

/** The longest texts, in UTF-16 units. Those that this library writes are far shorter. */
const LONGEST_WORD = 255;
const LONGEST_TEXT = 2_000;
/** How many holds, and how many waits, are read of one record. */
const MOST_TOLD = 100;
/** The last time that a Date can show, in milliseconds since 1970; no other time is longer either. */
const LATEST = 8.64e15;
/** Beside a line of text, it could write another line of a log, or to a terminal. */
const CONTROL = /\p{Cc}/u;
/** See the owners of locks: `<clientId>:<n>`. */
const CLIENT_ID = /^[^:{}\p{Cc}]{1,150}$/u;

/**
 * What was read of a record, by the names of its fields. What is missing counts as empty: another version may not write
 * it.
 */
type Fields = { readonly [Field in keyof ClientRecord]?: unknown };

/** Whether a client may be called so. */
export function isClientId(value: unknown): value is string {
  return typeof value === 'string' && CLIENT_ID.test(value);
}

/**
 * Reads the record of a client. Whoever may write beside the locks may have written it: the type and the length of
 * every field are checked.
 *
 * @returns undefined for one that no version of this library writes. A hold or wait that is bad is left out alone
 */
export function parseClientRecord(fields: Fields): ClientRecord | undefined {
  const { clientId, application, host = '', pid = 0, version = '', since = 0 } = fields;
  const { held = 0, waiting = 0, longestWait = 0, holds = [], waits = [] } = fields;
  if (!isClientId(clientId) || !isWord(application) || application === '' || !isWord(host) || !isWord(version))
    return undefined;
  if (!isCount(pid) || !isTime(since) || !isCount(held) || !isCount(waiting) || !isTime(longestWait)) return undefined;
  if (!Array.isArray(holds) || !Array.isArray(waits)) return undefined;
  return {
    clientId,
    application,
    host,
    pid,
    version,
    since,
    held,
    waiting,
    longestWait,
    holds: holds.slice(0, MOST_TOLD).filter(isHold),
    waits: waits.slice(0, MOST_TOLD).filter(isWait),
  };
}

function isHold(value: unknown): value is HoldRecord {
  const { owner, heldFor, ...about } = Object(value) as Partial<HoldRecord>;
  return isWord(owner) && isTime(heldFor) && saysWhat(about);
}

function isWait(value: unknown): value is WaitRecord {
  const { waiters, waitedFor, ...about } = Object(value) as Partial<WaitRecord>;
  return isCount(waiters) && isTime(waitedFor) && saysWhat(about);
}

/** Names of locks may contain any character. A type need not be one that this version knows. */
function saysWhat({
  key,
  type,
  group,
  method,
}: Partial<Pick<HoldRecord, 'key' | 'type' | 'group' | 'method'>>): boolean {
  return isText(key) && isWord(type) && isText(group) && isText(method);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_TEXT;
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_WORD && !CONTROL.test(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= LATEST;
}
