import {
  type AcquireAllReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  BackendError,
  type BackendHealth,
  type BlockingBackend,
  type Busy,
  type ExpectedHolders,
  type HeldType,
  InProcessWaits,
  type LockBackend,
  type LockState,
  type NodeWatch,
  type OwnerRef,
  printsAs,
  type ReleaseReply,
  type ReleaseRequest,
  type Removal,
  type RenewRequest,
  type Subscription,
  type TransferRequest,
  WaitStore,
} from '../backend.js';
import type { AcquisitionTools, TakenLocks } from './acquisition.js';
import { DatabaseWait } from './database-wait.js';
import { HeldLocks } from './held-locks.js';
import { refusalOf } from './refused-types.js';
import type { KnownState } from './server/lock-server.js';
import { Holdings } from './session/holdings.js';
import type { TokenRange } from './session-locks/session-locks.js';
import { SqlDirectory } from './sql-directory.js';
import { tryAll } from './try-all.js';

/** How long {@link SqlLockBackend.close} lets waits end in the database, in milliseconds. */
const GOODBYE = 500;

/**
 * Locks that are held by sessions of a database. The lease is the idle time after which the server ends such a session.
 * See docs/locks-in-sql.md.
 */
export class SqlLockBackend implements LockBackend {
  readonly synchronizers = undefined;
  readonly permitsRefusal = 'a lock of a database has one holder. Use a single Redis, or leave out permits';
  readonly confirmsReleases = 'a lock is released by a statement of its session, which can fail';
  readonly blocking: BlockingBackend;
  readonly adoptRefusal = 'a lock belongs to a database session, which ends with its process';
  /** Deadlocks are detected only among the callers of this backend. */
  readonly waits: InProcessWaits;
  readonly directory: SqlDirectory;
  private readonly holdings = new Holdings();
  private readonly held: HeldLocks;
  private readonly databaseWaits = new Map<AcquireRequest, DatabaseWait>();
  private closed = false;

  constructor(
    readonly description: string,
    private readonly tools: AcquisitionTools,
  ) {
    this.held = new HeldLocks(tools, this.holdings);
    this.directory = new SqlDirectory(tools.control, tools.server);
    const holders = async (key: string) => (await this.inspect(key)).owners.map(({ owner }) => owner);
    const monotonic = () => tools.runtime.monotonic();
    this.waits = new InProcessWaits(new WaitStore(), monotonic, monotonic, holders);
    this.blocking = {
      refusal: refusalOf,
      acquire: (request, onWait) => this.wait(request, onWait),
      stop: (request) => this.databaseWaits.get(request)?.stop(),
    };
  }

  get connectionError(): Error | undefined {
    return this.tools.control.error;
  }

  /** The health of the control connection. */
  get health(): NodeWatch {
    return this.tools.control.watch;
  }

  async ping(): Promise<BackendHealth> {
    this.check();
    const { control, server } = this.tools;
    await control.run((connection) => server.touch(connection));
    return { listening: undefined };
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    this.check(request.type);
    const again = await this.held.again(request);
    if (again !== undefined) return again;
    const reply = await this.takeAll([request]);
    return 'index' in reply ? busyOf(reply) : granted(reply.tokens[0]);
  }

  canAcquireTogether(): boolean {
    return true;
  }

  /** Takes the locks in one transaction, in the order of their names. So one of several concurrent callers gets all. */
  async acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply> {
    for (const { type } of requests) this.check(type);
    const own = requests.filter(({ key, type, owner }) => this.holdings.find(key, type, owner) !== undefined);
    const missing = requests.filter((request) => !own.includes(request)).sort((a, b) => (a.key < b.key ? -1 : 1));
    const taken = await this.takeAll(missing);
    if ('index' in taken) return { ...taken, index: requests.indexOf(missing[taken.index]) };
    const renewed = await Promise.all(own.map((request) => this.held.again(request)));
    const tokens = requests.map((request) => {
      const token = own.includes(request) ? renewed[own.indexOf(request)] : taken.tokens[missing.indexOf(request)];
      if (token === undefined) throw new BackendError('a lock was lost meanwhile', 'unavailable', 'unknown');
      return token.token;
    });
    return { acquired: true, tokens };
  }

  async release({ key, type, owner }: ReleaseRequest): Promise<ReleaseReply> {
    this.check(type);
    const released = await this.held.release(key, type, owner);
    return { released, listeners: 0, published: false, resent: false };
  }

  async transfer(request: TransferRequest): Promise<Acquired | undefined> {
    this.check(request.type);
    return this.held.transfer(request);
  }

  async renew({ key, type, owner, leaseTime }: RenewRequest): Promise<boolean> {
    this.check(type);
    return this.held.renew(key, type, owner, leaseTime);
  }

  /** Nothing to refresh: the database knows waiters only by their statements. */
  async refreshWaiters(waiters: readonly OwnerRef[]): Promise<readonly boolean[]> {
    this.check();
    return waiters.map(() => true);
  }

  async removeWaiter(): Promise<void> {
    this.check();
  }

  async forceRelease(key: string, expected?: ExpectedHolders): Promise<readonly string[]> {
    this.check();
    const { control, server } = this.tools;
    for (;;) {
      const state = await control.run((connection) => server.read(connection, key));
      if (state === undefined || !isMeant(state, expected)) return [];
      const holding = this.holdings.find(key);
      const own = holding?.owner === state.owner ? holding : undefined;
      if (own !== undefined) own.session.endsBecause = 'it was force-released';
      const isKilled = await control.run((connection) => server.kill(connection, key, state));
      if (own !== undefined && isKilled) this.holdings.remove(own);
      if (own !== undefined && !isKilled) own.session.endsBecause = undefined;
      if (isKilled) return [state.owner];
      // By now, the lock has another holder or is free.
    }
  }

  async inspect(key: string): Promise<LockState> {
    this.check();
    const { control, server } = this.tools;
    const state = await control.run((connection) => server.read(connection, key));
    if (state === undefined) return { mode: 'free', owners: [], queue: [], token: undefined };
    const { owner, mode, remaining, token } = state;
    return { mode, owners: [{ owner, remaining }], queue: [], token };
  }

  /** A release sends no message, because callers wait in the database. */
  subscribe(): Subscription {
    return { ready: Promise.resolve(), close: () => {} };
  }

  listenToClient(clientId: string, listener: (removal: Removal) => void): Subscription {
    return { ready: Promise.resolve(), close: this.holdings.listen(clientId, listener) };
  }

  /** Leaves sessions that hold a lock open. The server ends them when their leases end. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    const { control, pool, runtime } = this.tools;
    const waits = [...this.databaseWaits.values()];
    for (const wait of waits) wait.stop();
    for (const until = runtime.monotonic() + GOODBYE; this.databaseWaits.size > 0 && runtime.monotonic() < until; )
      await new Promise<void>((resolve) => void runtime.timer(10, resolve, 'keep-alive'));
    await pool.close((connection) => this.holdings.holds(connection));
    await control.close();
  }

  private async wait(request: AcquireRequest, onWait: (reason: Busy | BackendError) => void): Promise<AcquireReply> {
    this.check(request.type);
    const again = await this.held.again(request);
    if (again !== undefined) return again;
    const wait = new DatabaseWait(this.tools, request, onWait, () => this.lookUp(request.key));
    this.databaseWaits.set(request, wait);
    const taken = await wait.run().finally(() => this.databaseWaits.delete(request));
    if (taken === undefined) return { acquired: false, remaining: -1, holder: undefined };
    this.keep(taken, [request]);
    return { ...granted(taken.tokens[0]), confirmed: taken.confirmed };
  }

  private async takeAll(
    requests: readonly AcquireRequest[],
  ): Promise<Pick<TakenLocks, 'tokens'> | (Busy & { readonly index: number })> {
    const [first, ...rest] = requests;
    if (first === undefined) return NOTHING_TAKEN;
    const taken = await tryAll(this.tools, [first, ...rest]);
    if ('index' in taken) return { ...(await this.lookUp(requests[taken.index].key)), ...taken };
    this.keep(taken, requests);
    return taken;
  }

  /** @throws BackendError if the session has ended meanwhile */
  private keep({ connection, transaction, tokens }: TakenLocks, requests: readonly AcquireRequest[]): void {
    if (connection.ended !== undefined) throw this.tools.failures.toBackendError(connection.ended);
    if (this.closed) connection.close();
    this.check();
    const locks = requests.map(({ key, type, owner }, index) => ({ key, type, owner, token: tokens[index].token }));
    this.holdings.add(connection, transaction, requests[0].leaseTime, locks);
  }

  /** Reads what is known about a holder. One that took the lock without this library has no note. */
  private async lookUp(key: string): Promise<Busy> {
    const { control, server } = this.tools;
    const state = await control.run((connection) => server.read(connection, key)).catch(() => undefined);
    return { acquired: false, remaining: state?.remaining ?? -1, holder: state?.owner };
  }

  private check(type: HeldType = 'reentrant'): void {
    if (this.closed) throw new BackendError(`${this.description} was closed`, 'unavailable', 'refused');
    const refusal = refusalOf(type);
    if (refusal !== undefined) throw new BackendError(`no locks of type '${type}': ${refusal}`, 'denied', 'refused');
  }
}

const NOTHING_TAKEN: Pick<TakenLocks, 'tokens'> = { tokens: [] };

function isMeant({ owner, token }: KnownState, expected: ExpectedHolders | undefined): boolean {
  if (expected === undefined) return true;
  return expected.owners.includes(owner) && (expected.token === undefined || expected.token === token);
}

function granted({ token, reserved }: TokenRange): Acquired {
  return { acquired: true, token, reserved };
}

function busyOf({ remaining, holder }: Busy): Busy {
  return { acquired: false, remaining, holder };
}

printsAs(SqlLockBackend, ({ description }) => ({ description }));
