import { deadlineTimer, type Runtime } from '../../backend.js';

export type SqlRow = Readonly<Record<string, unknown>>;

export interface SqlResult {
  readonly rows: readonly SqlRow[];
  /** How many rows the statement changed. */
  readonly changed: number;
  /** The value of LAST_INSERT_ID() (MySQL). */
  readonly lastId: number;
  /** The command that the server reports as done (PostgreSQL): `COMMIT`. */
  readonly command?: string;
}

/** The methods of a connection, the same for every driver. */
export interface DriverConnection {
  /**
   * The number of the session that the server announced when the connection was opened. A pooler announces a number
   * that no server has assigned.
   */
  readonly announced: number | undefined;
  run(sql: string, parameters?: readonly unknown[]): Promise<SqlResult>;
  /** Calls back when the connection ends or fails, perhaps more than once. */
  onEnd(listener: (error?: Error) => void): void;
  /** Closes the connection in the regular way. A server that does not answer cannot keep the process alive. */
  close(): void;
  /** Closes the socket. */
  destroy(): void;
  /** Lets the process exit although the connection is open. */
  unref(): void;
}

/** Opens connections of one database. */
export interface Driver {
  /** Names host and database: `postgres 127.0.0.1:5432/shop`. It never contains a secret. */
  readonly description: string;
  /** How many connections can be opened in addition to those that hold locks. Absent: there is no limit. */
  readonly spare?: number;
  /** @throws the driver's error */
  connect(): Promise<DriverConnection>;
}

/** The server's number of a session, and what distinguishes the session from later ones with the same number. */
export interface SessionIdentity {
  readonly id: number;
  readonly origin: string;
}

/** The connection ended before the statement was answered, or the answer did not arrive in time. */
export class ConnectionLost extends Error {
  override readonly name: string = 'ConnectionLost';
}

/** The connection ended before the statement was sent, so the statement was certainly not executed. */
export class NotSent extends ConnectionLost {
  override readonly name = 'NotSent';
}

/**
 * @param limit how long to wait for the answer after the statement was sent, in milliseconds; `Infinity`: no limit
 */
export type RunStatement = (sql: string, parameters?: readonly unknown[], limit?: number) => Promise<SqlResult>;

interface Turn {
  begin(): void;
  refuse(error: NotSent): void;
}

export interface ConnectionLimits {
  /** How long to wait for the answer after a statement was sent, in milliseconds. */
  readonly limit: number;
  /** Whether a statement without an answer ends the connection. */
  readonly endsWhenSilent?: boolean;
}

/**
 * One connection with its session. Its statements are sent one after the other. When the connection ends, statements
 * without an answer are rejected, even if the driver does not reject them.
 */
export class SqlConnection implements SessionIdentity {
  /** Why it has ended. `undefined`: it has not. */
  ended: ConnectionLost | undefined;
  id = 0;
  origin = '';

  private isBusy = false;
  private readonly turns: Turn[] = [];
  private readonly unanswered = new Set<(error: Error) => void>();
  private readonly listeners: ((reason: ConnectionLost) => void)[] = [];

  constructor(
    private readonly connection: DriverConnection,
    private readonly runtime: Runtime,
    private readonly limits: ConnectionLimits,
  ) {
    connection.onEnd((error) => this.end(error?.message ?? 'the connection was closed'));
  }

  get announced(): number | undefined {
    return this.connection.announced;
  }

  identify({ id, origin }: SessionIdentity): void {
    this.id = id;
    this.origin = origin;
  }

  /** @throws ConnectionLost, or the driver's error */
  run(sql: string, parameters?: readonly unknown[], limit?: number): Promise<SqlResult> {
    return this.inTurn(() => this.send(sql, parameters, limit));
  }

  /**
   * Runs several statements without statements of other callers in between.
   *
   * @throws ConnectionLost, or the driver's error
   */
  exclusively<T>(work: (run: RunStatement) => Promise<T>): Promise<T> {
    return this.inTurn(() => work((...statement) => this.send(...statement)));
  }

  /** Calls back once, when it has ended. */
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

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.ended !== undefined) return Promise.reject(new NotSent(this.ended.message));
    if (!this.isBusy) return this.begin(work);
    return new Promise((resolve, reject) => {
      this.turns.push({ begin: () => this.begin(work).then(resolve, reject), refuse: reject });
    });
  }

  private begin<T>(work: () => Promise<T>): Promise<T> {
    this.isBusy = true;
    const done = work();
    const next = () => {
      this.isBusy = false;
      this.turns.shift()?.begin();
    };
    done.then(next, next);
    return done;
  }

  private send(sql: string, parameters?: readonly unknown[], limit = this.limits.limit): Promise<SqlResult> {
    if (this.ended !== undefined) return Promise.reject(this.ended);
    return new Promise((resolve, reject) => {
      const { unanswered, runtime } = this;
      const timer = Number.isFinite(limit)
        ? deadlineTimer(runtime, limit, () => this.silent(limit, fail), 'keep-alive')
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

  private silent(limit: number, fail: (error: Error) => void): void {
    const silence = `no answer within ${limit} ms`;
    if (this.limits.endsWhenSilent) this.destroy(silence);
    else fail(new ConnectionLost(silence));
  }

  private end(why: string): void {
    if (this.ended !== undefined) return;
    this.ended = new ConnectionLost(`the connection to the database has ended: ${why}`);
    for (const turn of this.turns.splice(0)) turn.refuse(new NotSent(this.ended.message));
    for (const fail of [...this.unanswered]) fail(this.ended);
    for (const listener of this.listeners.splice(0)) listener(this.ended);
  }
}
