/** Which application a lock service belongs to. */
export interface ClientIdentity {
  readonly application: string;
  readonly host: string;
  readonly pid: number;
  /** The application's version; `''`: not known. */
  readonly version: string;
}

/** Where a UUID has its version. */
const VERSION_AT = 14;
/** The version for ids of any making (RFC 9562). Java makes ids of version 4. */
const OURS = '8';

/** A UUID that shows that it belongs to a client of this library, and not to one of Redisson. */
export function toClientId(uuid: string): string {
  return `${uuid.slice(0, VERSION_AT)}${OURS}${uuid.slice(VERSION_AT + 1)}`;
}

/** Whether an owner without a record belongs to Java. */
export function isRedisson(owner: string): boolean {
  return owner[VERSION_AT] === '4';
}
