import type { HeldType } from '../../../../lib/backends/lock-backend.js';
import type { Reply } from '../../../../lib/backends/redis/in-process/redis-error.js';
import type { SimulatedServer } from './simulated-server.js';

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
    }
  | {
      readonly kind: 'transfer';
      readonly key: string;
      readonly type: HeldType;
      readonly owner: string;
      readonly from: string;
      readonly leaseTime: number;
    }
  | {
      readonly kind: 'acquire-all';
      readonly keys: readonly string[];
      readonly types: readonly HeldType[];
      /** Of the first key. */
      readonly owner: string;
    }
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

/** The number of a copy of a request, counted from 1. A client, or its library, may send a request more than once. */
export type Copy = number;

/** Is notified of what becomes of a request of a process. */
export interface RequestTrace {
  answered(reply: unknown): void;
  failed(outcome: 'refused' | 'unknown'): void;
}

/** Is notified of what happens to a command for a server, which may contain several requests. */
export interface CommandTrace {
  /** It was written on a connection: once, or again on another one. */
  written(): WrittenTrace;
}

/** Is notified of what becomes of a command on one connection. */
export interface WrittenTrace {
  /** The server executes it. */
  execute(run: () => Reply): Reply;
  /** It will never arrive. */
  lost(): void;
  answered(): void;
}

/** Is notified of every request of a simulation. */
export interface LinkTrace {
  /** Whether it can say that a lease began with a message. Otherwise the processes ask the server. */
  readonly knowsGrants: boolean;
  /** A process asks its backend. */
  asked(process: string, subject: Subject): RequestTrace;
  /** A client library is given a command. Undefined: it is not traced. */
  sent(process: string, server: SimulatedServer, name: string, args: readonly string[]): CommandTrace | undefined;
}
