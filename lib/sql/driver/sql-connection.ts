import type { Runtime } from '../../backends/runtime.js';

export type SqlRow = Readonly<Record<string, unknown>>;

export interface SqlResult {
  readonly rows: readonly SqlRow[];
  /** How many rows the statement changed. */
  readonly changed: number;
  /** What LAST_INSERT_ID() was set to (MySQL). */
  readonly lastId: number;
  /** What the server says that it has done (PostgreSQL): `COMMIT`. */
  readonly command?: string;
}

/** What a driver's connection can do, whichever driver it is. */
export interface DriverConnection {
  /** The server's number of the session. */
  readonly id: number;
  run(sql: string, parameters?: readonly unknown[]): Promise<SqlResult>;
  /** Calls back at the latest when the connection has ended, perhaps more than once. */
  onEnd(listener: (error?: Error) => void): void;
  /** Says goodbye to the server. */
  close(): void;
  /** Closes the socket. */
  destroy(): void;
  /** Does not keep the process alive any more. */
  unref(): void;
}

/** Opens connections of one database. */
export interface Driver {
  /** Of host and database: `postgres 127.0.0.1:5432/shop`. It never contains a secret. */
  readonly description: string;
  /** @throws the driver's error */
  connect(): Promise<DriverConnection>;
}

/** The connection ended before the statement was answered, or there was no answer in time. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/**
 * One connection with a session of its own. Statements that have no answer when it ends are rejected, whatever the driver does about them.
 */
export class SqlConnection {
  /** Why it has ended; `undefined`: it has not. */
  ended: ConnectionLost | undefined;
  private readonly unanswered = new Set<(error: Error) => void>();
  private readonly listeners: ((reason: ConnectionLost) => void)[] = [];

  /** @param limit how long the answer to a statement is awaited, in milliseconds */
  constructor(
    private readonly connection: DriverConnection,
    private readonly runtime: Runtime,
    private readonly limit: number,
  ) {
    connection.onEnd((error) => this.end(error?.message ?? 'the connection was closed'));
  }

  get id(): number {
    return this.connection.id;
  }

  /**
   * @param limit as in the constructor; `Infinity`: none
   * @throws ConnectionLost, or the driver's error
   */
  run(sql: string, parameters?: readonly unknown[], limit = this.limit): Promise<SqlResult> {
    if (this.ended !== undefined) return Promise.reject(this.ended);
    return new Promise((resolve, reject) => {
      const { unanswered, runtime } = this;
      const timer = Number.isFinite(limit)
        ? runtime.timer(limit, () => fail(new ConnectionLost(`no answer within ${limit} ms`)), 'keep-alive')
        : undefined;
      const settle = () => {
        timer?.cancel();
        unanswered.delete(fail);
      };
      const fail = (error: Error) => {
        settle();
        reject(error);
      };
      unanswered.add(fail);
      runtime
        .detached(() => this.connection.run(sql, parameters))
        .then((result) => {
          settle();
          resolve(result);
        }, fail);
    });
  }

  /** Calls back when it has ended, once. */
  onEnd(listener: (reason: ConnectionLost) => void): void {
    this.listeners.push(listener);
  }

  close(): void {
    this.end('it was closed');
    this.connection.close();
  }

  destroy(why = 'it was closed'): void {
    this.end(why);
    this.connection.destroy();
  }

  unref(): void {
    this.connection.unref();
  }

  private end(why: string): void {
    if (this.ended !== undefined) return;
    this.ended = new ConnectionLost(`the connection to the database has ended: ${why}`);
    for (const fail of [...this.unanswered]) fail(this.ended);
    for (const listener of this.listeners.splice(0)) listener(this.ended);
  }
}
