import type { HeldType, OwnerRef, TransferableType, TransferRequest } from '../../lock-backend.js';
import type { MemberAcquireRequest } from '../../quorum/quorum-member.js';
import { LOCK, type LockKey, PERMITS } from '../calls/item-answer.js';
import {
  announcedWriters,
  fairHeartbeats,
  fairQueue,
  fairTimeouts,
  fencingToken,
  forgottenAt,
  readLease,
} from '../lock-keys.js';
import type { ScriptName } from '../scripts.js';

type KeyOfLock = LockKey<Pick<OwnerRef, 'key'>>;
type KeyOfOwner = LockKey<Pick<OwnerRef, 'key' | 'owner'>>;

/** A script, and the keys that it needs for each lock, in the order that it expects. */
export interface LockScript {
  readonly name: ScriptName;
  readonly keys: readonly KeyOfOwner[];
}

export interface AcquireScript extends LockScript {
  /** The argument that the script takes besides the lease time, the highest token and the reserve. */
  readonly option?: keyof Pick<MemberAcquireRequest, 'waiterTimeout' | 'pastWaitingWriters' | 'permits'>;
}

export interface RefreshScript extends LockScript {
  /** Whether the script may have to wake a waiter. */
  readonly publishes: boolean;
}

interface LockTypeScripts {
  readonly acquire: AcquireScript;
  readonly release: LockScript;
  readonly renew: LockScript;
  /** Undefined: waiters of this type are not registered in Redis. */
  readonly waiters?: {
    readonly refresh: RefreshScript;
    readonly remove: LockScript;
  };
}

interface TransferScript {
  readonly transfer: {
    readonly name: ScriptName;
    readonly keys: readonly LockKey<Pick<TransferRequest, 'key' | 'from' | 'to'>>[];
  };
}

export const TOKEN_COUNTER: KeyOfLock = { of: ({ key }) => fencingToken(key), type: 'string' };
export const WAITING_WRITERS: KeyOfLock = { of: ({ key }) => announcedWriters(key), type: 'zset' };
/** The lease of a reader. The scripts of writers use it too, because a writer may also read. */
const READ_LEASE: KeyOfOwner = { of: ({ key, owner }) => readLease(key, owner), type: 'string' };

const FORGOTTEN: KeyOfLock = { of: ({ key }) => forgottenAt(key), type: 'string' };

/** The keys of a fair lock: the lock and its queue. */
export const FAIR_KEYS: readonly KeyOfLock[] = [
  LOCK,
  { of: ({ key }) => fairQueue(key), type: 'list' },
  { of: ({ key }) => fairTimeouts(key), type: 'zset' },
  { of: ({ key }) => fairHeartbeats(key), type: 'zset' },
];

/** The places of a line. They are made by `enter-line` and `enter-permits-line`. */
const PLACES: LockTypeScripts['waiters'] = {
  refresh: { name: 'refresh-places-1', keys: [LOCK], publishes: true },
  remove: { name: 'remove-place-1', keys: [LOCK] },
};

/** Which scripts each lock type has, and which keys they need. */
export const LOCK_SCRIPTS: Record<HeldType, LockTypeScripts> & Record<TransferableType, TransferScript> = {
  reentrant: {
    acquire: { name: 'acquire-reentrant', keys: [LOCK] },
    release: { name: 'release-reentrant', keys: [LOCK] },
    renew: { name: 'renew-reentrant', keys: [LOCK] },
    transfer: { name: 'transfer-reentrant-2', keys: [LOCK] },
    waiters: PLACES,
  },
  fenced: {
    acquire: { name: 'acquire-fenced', keys: [LOCK, TOKEN_COUNTER] },
    release: { name: 'release-reentrant', keys: [LOCK] },
    renew: { name: 'renew-reentrant', keys: [LOCK] },
    transfer: { name: 'transfer-reentrant-2', keys: [LOCK] },
    waiters: PLACES,
  },
  fair: {
    acquire: { name: 'acquire-fair', keys: FAIR_KEYS, option: 'waiterTimeout' },
    release: { name: 'release-fair', keys: FAIR_KEYS },
    renew: { name: 'renew-fair', keys: FAIR_KEYS },
    waiters: {
      refresh: { name: 'refresh-fair-waiters-4', keys: FAIR_KEYS, publishes: true },
      remove: { name: 'remove-fair-waiter-4', keys: FAIR_KEYS },
    },
  },
  read: {
    acquire: { name: 'acquire-read', keys: [LOCK, READ_LEASE, WAITING_WRITERS], option: 'pastWaitingWriters' },
    release: { name: 'release-read', keys: [LOCK, READ_LEASE] },
    renew: { name: 'renew-read', keys: [LOCK, READ_LEASE] },
  },
  // Single flights with results are acquired and released in flights/redis-flights.ts.
  flight: {
    acquire: { name: 'acquire-reentrant', keys: [LOCK] },
    release: { name: 'release-reentrant', keys: [LOCK] },
    renew: { name: 'renew-flight', keys: [LOCK, FORGOTTEN] },
  },
  permits: {
    acquire: { name: 'acquire-permits', keys: [PERMITS], option: 'permits' },
    release: { name: 'release-permits', keys: [PERMITS] },
    renew: { name: 'renew-permits', keys: [PERMITS] },
    transfer: { name: 'transfer-permits-2', keys: [PERMITS] },
    waiters: PLACES,
  },
  write: {
    acquire: { name: 'acquire-write', keys: [LOCK, READ_LEASE, WAITING_WRITERS], option: 'waiterTimeout' },
    release: { name: 'release-write', keys: [LOCK, READ_LEASE] },
    renew: { name: 'renew-write', keys: [LOCK, READ_LEASE] },
    transfer: {
      name: 'transfer-write-5',
      keys: [
        LOCK,
        { of: ({ key, from }) => readLease(key, from), type: 'string' },
        { of: ({ key, to }) => readLease(key, to), type: 'string' },
        WAITING_WRITERS,
      ],
    },
    waiters: {
      refresh: { name: 'refresh-writers-1', keys: [WAITING_WRITERS], publishes: false },
      remove: { name: 'remove-writer-2', keys: [LOCK, WAITING_WRITERS] },
    },
  },
};
