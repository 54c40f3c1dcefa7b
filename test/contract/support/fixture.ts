import type { HeldType, LockBackend } from '../../../lib/backends/lock-backend.js';
import type { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

/** A backend of its own, as another process would have it. */
export interface Client {
  readonly backend: LockBackend;
  /** The `<clientId>` of its owners. */
  readonly id: string;
  /** The clock of its store if the suite advances it. Default: the store has a clock of its own, in real time. */
  readonly clock?: VirtualRuntime;
}

/** A store that is empty when it is opened, and clients of it. */
export interface Fixture {
  connect(): Promise<Client>;
  /** Ends what the fixture started itself. The suite has closed the clients before. */
  stop(): Promise<void>;
}

/** The few points in which topologies differ. Everything else is the contract. */
export interface Capabilities {
  /** Default: all. */
  readonly types?: readonly HeldType[];
  /** Whether `listeners` counts the clients of every node. Default true. */
  readonly countsListeners?: boolean;
  /** Whether readers that hold a lock together have different tokens. Default true. */
  readonly tokensDiffer?: boolean;
  /** Whether tokens are reserved for hand-offs. Default true. */
  readonly reserves?: boolean;
  /** Whether there are single flights. Default true. */
  readonly flights?: boolean;
  /** Whether locks can be adopted. Default true. */
  readonly adopts?: boolean;
  /**
   * Whether one slow node of several may add something: a second message about the same release, or an owner that it
   * received only after the forced release on the other nodes. Default false.
   */
  readonly nodesLag?: boolean;
  /** Whether it can be a node of a quorum. Default true. */
  readonly joinsQuorums?: boolean;
  /** Whether processes wait in line. Default true. */
  readonly lines?: boolean;
  /** Whether releases are published, for waiters to listen for. Default true. */
  readonly publishes?: boolean;
  /**
   * Whether any client can release what was transferred to another one. Default true; false if a lock belongs to a
   * session of its client.
   */
  readonly sharesOwners?: boolean;
  /** Whether a holder is known from the moment it holds the lock. Default true. */
  readonly knowsHolders?: boolean;
  /** How many locks one client can hold at once. Default: as many as a test wants. */
  readonly most?: number;
  /** Leases are rounded up to a multiple of this, in milliseconds. Default 1. */
  readonly leaseUnit?: number;
}

export const ALL_TYPES: readonly HeldType[] = ['reentrant', 'fair', 'read', 'write', 'fenced', 'permits'];
