import type { Runtime } from '../../runtime.js';

/** What a connection needs from the backend that it belongs to. */
export interface ConnectionContext {
  readonly runtime: Runtime;
  /** Milliseconds within which every command is answered. */
  readonly commandTimeout: number;
  /** Receives errors of our own clients, without secrets. */
  readonly onError: (error: unknown) => void;
  /** Receives warnings about a server configuration that makes locks unsafe. */
  readonly onWarning: (message: string) => void;
  /** Called once, when a server has answered for the first time, with its name, its version and the client library. */
  readonly onConnected?: ((server: string) => void) | undefined;
  /** That of the locks, to tell other keys from them. */
  readonly keyPrefix?: string | undefined;
  /**
   * Whether scripts with a deadline are certainly not executed after their callers have stopped waiting, although they
   * may be refused a little too early. Default: they may be executed a little later.
   */
  readonly strictDeadlines?: boolean;
  /** Called once, when a server has answered for the first time, if the user may lack rights. */
  readonly onLimitedUser?: (() => void) | undefined;
}
