import type { LockBackend } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { ClientIdentity } from '../clients/client-record-writer.js';
import type { LockLogger } from '../events/lock-logger.js';
import type { Milliseconds } from './duration.js';
import type { ReleaseMode } from './lock-options.js';

/** For a backend that does not set its own, in milliseconds. */
export const DEFAULT_COMMAND_TIMEOUT = 2_000;

/** The settings of an engine. Every value has been checked. */
export interface EngineSettings {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly logger: LockLogger;
  readonly clientId: string;
  /** Default: none, so that other services do not see this one. */
  readonly identity?: ClientIdentity | undefined;
  readonly keyPrefix: string;
  /** Default false: see {@link refuseSuspiciousName}. */
  readonly allowSuspiciousNames?: boolean | undefined;
  readonly watchdogTimeout: Milliseconds;
  /**
   * The option `fairWaitTimeout`: how long the backend keeps a waiter (of a fair lock, or a writer) that does not
   * refresh its registration.
   */
  readonly waiterTimeout: Milliseconds;
  readonly waitTime: Milliseconds;
  /** How long callers wait during an outage. Default 10 s. */
  readonly outageTimeout?: Milliseconds;
  readonly shutdownTimeout: Milliseconds;
  /** The backend answers or rejects within this time. Default 2 s. */
  readonly commandTimeout?: Milliseconds;
  /** Undefined: `'throw'`, but nobody asked for it. */
  readonly onLost?: 'throw' | 'warn' | undefined;
  /** Default `'confirmed'`. */
  readonly release?: ReleaseMode | undefined;
}
