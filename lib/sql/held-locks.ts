import { type Acquired, type AcquireRequest, BackendError, type HeldType, type TransferRequest } from '../backend.js';
import { type AcquisitionTools, holderOf } from './acquisition.js';
import { ConnectionLost } from './driver/sql-connection.js';
import type { Holding, Holdings } from './session/holdings.js';

/** MySQL and MariaDB: somebody has killed the statement. The transaction still has its locks. */
const INTERRUPTED = 1317;

/** Releases, renews and transfers locks that sessions of this process hold. */
export class HeldLocks {
  constructor(
    private readonly tools: AcquisitionTools,
    private readonly holdings: Holdings,
  ) {}

  /** An owner that already holds the lock gets a new token, and a new lease unless its own is longer. */
  async again({ key, type, owner, leaseTime, reserve }: AcquireRequest): Promise<Acquired | undefined> {
    const holding = this.holdings.find(key, type, owner);
    if (holding === undefined) return undefined;
    return this.noteAgain(holding, Math.max(leaseTime, holding.leaseTime), reserve);
  }

  /** Returns false if this owner does not hold the lock. */
  async release(key: string, type: HeldType, owner: string): Promise<boolean> {
    const { failures, notes, pool, server } = this.tools;
    const holding = this.holdings.find(key, type, owner);
    if (holding === undefined) return false;
    const { session } = holding;
    const isLast = this.holdings.remove(holding);
    // All locks of a session become free together.
    if (!isLast) return true;
    // The release succeeds even if the record of the holder remains.
    const withdrawn = notes.withdraw(session.given).then(
      () => true,
      () => false,
    );
    try {
      const isReleased = await server.locks.release(session.connection, session.taken);
      // A session that is still recorded as the holder must end. Otherwise its next lock would be shown under this
      // name, and a forced release of this lock would end the next one.
      const returned = withdrawn.then((isWithdrawn) => {
        if (isWithdrawn && isReleased) pool.give(session.connection);
        else pool.drop(session.connection);
      });
      if (!server.locks.showsReleases) await returned;
      return isReleased;
    } catch (error) {
      pool.drop(session.connection);
      throw failures.toBackendError(error, 'unknown');
    }
  }

  async renew(key: string, type: HeldType, owner: string, leaseTime: number): Promise<boolean> {
    const holding = this.holdings.find(key, type, owner);
    if (holding === undefined) return false;
    return this.setLease(holding, leaseTime);
  }

  async transfer({ key, type, from, to, leaseTime, reserve }: TransferRequest): Promise<Acquired | undefined> {
    const holding = this.holdings.find(key, type, from) ?? this.holdings.find(key, type, to);
    if (holding === undefined) return undefined;
    holding.owner = to;
    return this.noteAgain(holding, leaseTime, reserve);
  }

  private async noteAgain(holding: Holding, leaseTime: number, reserve: number): Promise<Acquired | undefined> {
    const { key, type, owner, session } = holding;
    if (!(await this.setLease(holding, leaseTime))) return undefined;
    holding.token = undefined;
    const holder = holderOf({ key, type, owner, leaseTime, reserve }, session.connection);
    const tokens = await this.tools.notes.write({ ...holder, transaction: session.transaction });
    holding.token = tokens.token;
    return this.holdings.find(key) === holding ? { acquired: true, ...tokens } : undefined;
  }

  /** Returns false if the lock is lost. */
  private async setLease(holding: Holding, leaseTime: number): Promise<boolean> {
    const { control, failures, pool, server } = this.tools;
    const { key, owner, session } = holding;
    const { connection } = session;
    holding.leaseTime = leaseTime;
    const longest = this.holdings.longestLease(session);
    try {
      if (session.leaseTime === longest) await server.touch(connection);
      else {
        session.leaseTime = undefined; // not known until there is an answer
        await server.locks.setLease(connection, longest);
        session.leaseTime = longest;
        for (const other of session.keys)
          await control.run((controlling) =>
            server.noteLease(controlling, other, this.holdings.find(other)?.owner ?? owner, longest),
          );
      }
      return this.holdings.find(key)?.session === session;
    } catch (error) {
      if (connection.ended !== undefined) return false;
      // There is no answer yet, or none from the control connection. A later renewal will find out.
      if (error instanceof ConnectionLost || error instanceof BackendError || isInterrupted(error))
        throw failures.toBackendError(error, 'unknown');
      // PostgreSQL gives up the row locks of a transaction as soon as one of its statements fails.
      pool.drop(connection, `a statement of the session failed: ${failures.scrub((error as Error).message)}`);
      return false;
    }
  }
}

function isInterrupted(error: unknown): boolean {
  return (error as { readonly errno?: number }).errno === INTERRUPTED;
}
