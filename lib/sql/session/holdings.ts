import { type HeldType, isOwnerOf, type Removal } from '../../backend.js';
import type { SqlConnection } from '../driver/sql-connection.js';

/** A lock that a session of this process holds. */
export interface Holding {
  readonly key: string;
  readonly type: HeldType;
  owner: string;
  /** The last token in its note. `undefined`: the content of the note is not known. */
  token: number | undefined;
  /** The time that its last renewal asked for, in milliseconds. */
  leaseTime: number;
  readonly session: HoldingSession;
}

/** A session that holds locks. They become free together. */
export class HoldingSession {
  readonly keys = new Set<string>();
  /** All locks that it has taken since it was last free, including those that their owners have given back. */
  taken: readonly string[] = [];
  /** The notes of locks that their owners have given back. */
  readonly given: Pick<Holding, 'key' | 'owner' | 'token'>[] = [];

  /** The idle time after which the server ends the session, in milliseconds. `undefined`: it is not known. */
  leaseTime: number | undefined;
  /** The transaction of its {@link TakenLock}. */
  transaction = 0;
  /** Why it will end, if this process knows. */
  endsBecause: string | undefined;

  constructor(readonly connection: SqlConnection) {}
}

/** The locks that the sessions of one process hold. When a session ends, its locks are lost. */
export class Holdings {
  private readonly byKey = new Map<string, Holding>();
  private readonly sessions = new WeakMap<SqlConnection, HoldingSession>();
  private readonly listeners = new Map<(removal: Removal) => void, string>();

  /** @returns a function that removes the listener */
  listen(clientId: string, listener: (removal: Removal) => void): () => void {
    this.listeners.set(listener, clientId);
    return () => this.listeners.delete(listener);
  }

  find(key: string, type?: HeldType, owner?: string): Holding | undefined {
    const holding = this.byKey.get(key);
    if (holding === undefined || owner === undefined) return holding;
    return holding.owner === owner && isWrite(holding.type) === isWrite(type) ? holding : undefined;
  }

  add(
    connection: SqlConnection,
    transaction: number,
    leaseTime: number,
    locks: readonly Omit<Holding, 'session' | 'leaseTime'>[],
  ): void {
    const session = this.sessionOf(connection);
    session.leaseTime = leaseTime;
    session.transaction = transaction;
    session.taken = locks.map(({ key }) => key);
    session.given.length = 0;
    for (const { key, type, owner, token } of locks) {
      session.keys.add(key);
      this.byKey.set(key, { key, type, owner, token, leaseTime, session });
    }
  }

  /** @returns true: the session holds no more locks */
  remove({ key, owner, token, session }: Holding): boolean {
    this.byKey.delete(key);
    session.keys.delete(key);
    session.given.push({ key, owner, token });
    return session.keys.size === 0;
  }

  /** The longest lease of the locks that the session holds: none of them may end before its time. */
  longestLease({ keys }: HoldingSession): number {
    return Math.max(...[...keys].map((key) => this.byKey.get(key)?.leaseTime ?? 0));
  }

  holds(connection: SqlConnection): boolean {
    return [...this.byKey.values()].some(({ session }) => session.connection === connection);
  }

  private sessionOf(connection: SqlConnection): HoldingSession {
    const known = this.sessions.get(connection);
    if (known !== undefined) return known;
    const session = new HoldingSession(connection);
    this.sessions.set(connection, session);
    connection.onEnd(({ message }) => this.lose(session, session.endsBecause ?? message));
    return session;
  }

  private lose(session: HoldingSession, reason: string): void {
    for (const key of [...session.keys]) {
      const holding = this.byKey.get(key);
      if (holding?.session !== session) continue;
      this.remove(holding);
      for (const [listener, clientId] of this.listeners)
        if (isOwnerOf(clientId, holding.owner)) listener({ key, owners: [holding.owner], reason });
    }
  }
}

function isWrite(type: HeldType | undefined): boolean {
  return type === 'write';
}
