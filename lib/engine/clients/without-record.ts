import { isRedisson } from './client-identity.js';

const REDISSON = 'a Redisson client';
const OURS = 'a client without a record';

/** How messages name the client of an owner that has no record. */
export function withoutRecord(owner: string): string {
  return isRedisson(owner) ? REDISSON : OURS;
}

/** The same with the reason, for logs. */
export function withoutRecordBecause(owner: string): string {
  return isRedisson(owner)
    ? REDISSON
    : `${OURS}: its process has ended, has held nothing for a second yet, or uses a quorum`;
}
