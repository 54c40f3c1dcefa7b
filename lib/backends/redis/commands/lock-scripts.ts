import type {
  AcquireRequest,
  HeldType,
  OwnerRef,
  TransferableType,
  TransferRequest,
  TypeWithLine,
} from '../../lock-backend.js';
import { LOCK, type LockKey, PERMITS } from '../calls/item-answer.js';
import { fairHeartbeats, fairQueue, fairTimeouts, fencingToken, forgottenAt, readLease } from '../lock-keys.js';
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
  readonly option?: keyof Pick<AcquireRequest, 'waiterTimeout' | 'pastLine' | 'permits'>;
}

interface LockTypeScripts {
  readonly acquire: AcquireScript;
  readonly release: LockScript;
  readonly renew: LockScript;
  /** Undefined: waiters of this type are not registered in Redis. */
  readonly waiters?: {
    readonly refresh: LockScript;
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

/** The scripts that acquire a lock or enter its line. */
export const ENTER_SCRIPTS: Record<TypeWithLine, ScriptName> = {
  reentrant: 'enter-line',
  fenced: 'enter-line',
  read: 'enter-read-write-line-3',
  write: 'enter-read-write-line-3',
  permits: 'enter-permits-line',
};

/** The places of a line. They are made by {@link ENTER_SCRIPTS}. */
const PLACES: LockTypeScripts['waiters'] = {
  refresh: { name: 'refresh-places-1', keys: [LOCK] },
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
      refresh: { name: 'refresh-fair-waiters-4', keys: FAIR_KEYS },
      remove: { name: 'remove-fair-waiter-4', keys: FAIR_KEYS },
    },
  },
  read: {
    acquire: { name: 'acquire-read', keys: [LOCK, READ_LEASE], option: 'pastLine' },
    release: { name: 'release-read', keys: [LOCK, READ_LEASE] },
    renew: { name: 'renew-read', keys: [LOCK, READ_LEASE] },
    waiters: PLACES,
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
    acquire: { name: 'acquire-write', keys: [LOCK, READ_LEASE] },
    release: { name: 'release-write', keys: [LOCK, READ_LEASE] },
    renew: { name: 'renew-write', keys: [LOCK, READ_LEASE] },
    transfer: {
      name: 'transfer-write-4',
      keys: [
        LOCK,
        { of: ({ key, from }) => readLease(key, from), type: 'string' },
        { of: ({ key, to }) => readLease(key, to), type: 'string' },
      ],
    },
    waiters: PLACES,
  },
};
