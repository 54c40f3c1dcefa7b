import type { ClientRecord, HoldRecord, WaitRecord } from '../lock-directory.js';

/** The longest accepted text, in UTF-16 units. The texts of this library are far shorter. */
const LONGEST_WORD = 255;
const LONGEST_TEXT = 2_000;
/** How many holds and how many waits are read from one record. */
const MOST_READ = 100;
/** The latest time that a Date can represent, in milliseconds since 1970. Durations have the same limit. */
const LATEST = 8.64e15;
/** Control characters could forge another line of a log, or control a terminal. */
const CONTROL = /\p{Cc}/u;
/** The part before the colon in the owners of locks: `<clientId>:<n>`. */
const CLIENT_ID = /^[^:{}\p{Cc}]{1,150}$/u;

/**
 * The fields of a record as they were read. A missing field counts as empty, because another version may not write
 * it.
 */
type Fields = { readonly [Field in keyof ClientRecord]?: unknown };

/** Whether this is a valid client id. */
export function isClientId(value: unknown): value is string {
  return typeof value === 'string' && CLIENT_ID.test(value);
}

/**
 * Reads the record of a client. Other software may have written it, so the type and the length of
 * every field are checked.
 *
 * @returns undefined for a record that no version of this library writes. Only an invalid hold or wait is left out
 * @publicApi
 */
export function parseClientRecord(fields: Fields): ClientRecord | undefined {
  const { clientId, application, host = '', pid = 0, version = '', since = 0 } = fields;
  const { held = 0, waiting = 0, longestWait = 0, holds = [], waits = [], blockedFor } = fields;
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
    ...(isTime(blockedFor) && { blockedFor }),
    holds: holds.slice(0, MOST_READ).filter(isHold),
    waits: waits.slice(0, MOST_READ).filter(isWait),
  };
}

function isHold(value: unknown): value is HoldRecord {
  const { owner, heldFor, ...about } = Object(value) as Partial<HoldRecord>;
  return isWord(owner) && isTime(heldFor) && describesLock(about);
}

function isWait(value: unknown): value is WaitRecord {
  const { waiters, waitedFor, ...about } = Object(value) as Partial<WaitRecord>;
  return isCount(waiters) && isTime(waitedFor) && describesLock(about);
}

/** Names of locks may contain any character, and the type may be unknown to this version. */
function describesLock({
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
