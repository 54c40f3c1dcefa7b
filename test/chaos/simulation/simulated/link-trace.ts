import type { HeldType } from '../../../../lib/backends/lock-backend.js';

/** The parts of a request that traces need. Undefined: the request is not traced. */
export type Subject =
  | {
      readonly kind: 'acquire';
      readonly key: string;
      readonly type: HeldType;
      readonly owner: string;
      readonly leaseTime: number;
      /** For how long it keeps a place in line; 0: it enters no line. */
      readonly waiterTimeout: number;
      readonly pastLine: boolean;
      /** How many may hold the lock; 0: it is not such a lock. */
      readonly permits: number;
      /** See `AcquireRequest.nonce`. */
      readonly nonce: string | undefined;
      /** See `AcquireRequest.grantLease`. */
      readonly grantLease: number;
      /** It may grow until the request is executed, because nothing is serialised here. */
      readonly reserve: () => number;
    }
  | {
      readonly kind: 'transfer';
      readonly key: string;
      readonly type: HeldType;
      readonly owner: string;
      readonly from: string;
      readonly leaseTime: number;
      readonly reserve: () => number;
    }
  | { readonly kind: 'acquire-all'; readonly keys: readonly string[]; readonly types: readonly HeldType[] }
  | {
      readonly kind: 'renew';
      readonly key: string;
      readonly type: HeldType;
      readonly owner: string;
      readonly leaseTime: number;
    }
  | { readonly kind: 'release'; readonly key: string; readonly type: HeldType; readonly owner: string }
  | {
      readonly kind: 'keep';
      readonly key: string;
      readonly owners: readonly string[];
      readonly nonces: readonly (string | undefined)[];
      readonly waiterTimeout: number;
    }
  | { readonly kind: 'leave'; readonly key: string; readonly owner: string }
  | { readonly kind: 'raise'; readonly key: string; readonly token: number }
  | { readonly kind: 'force'; readonly key: string };

/** If the client library sends a request twice, it reads the answer to the second copy. */
export type Copy = 1 | 2;

/** Is notified of what happens to one request. */
export interface RequestTrace {
  /** The server has executed a copy. */
  executed(reply: unknown, copy: Copy): void;
  /** The server did not execute a copy, because it arrived after its deadline. */
  late(copy: Copy): void;
  /** A copy will never arrive. */
  lost(copy: Copy): void;
  /** The client library sends it again. */
  resent(): void;
  answered(reply: unknown): void;
  failed(outcome: 'refused' | 'unknown'): void;
}

/** Is notified of every request of a simulation. */
export interface LinkTrace {
  /** Whether it can say that a lease began with a message. Otherwise the processes ask the server. */
  readonly knowsGrants: boolean;
  /**
   * @param seen the highest token that the process has seen
   * @param validUntil the time of the server's clock after which the request is not executed
   */
  sent(process: string, subject: Subject, seen: number, validUntil: number | undefined): RequestTrace;
}
