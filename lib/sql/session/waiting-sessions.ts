import type { Runtime, Timer } from '../../backends/runtime.js';
import type { SqlConnection } from '../driver/sql-connection.js';
import type { LockServer } from '../server/lock-server.js';
import type { ControlConnection } from './control-connection.js';

/** How long after the first look a second one has to agree that a session does not wait, in milliseconds. */
const SECOND_LOOK = 1_000;
/** The shortest time between two checks of the sessions, however short leases are, in milliseconds. */
const SHORTEST_PERIOD = 1_000;

/** A session that waits for a lock, as this process believes. */
interface WaitingSession {
  readonly connection: SqlConnection;
  readonly leaseTime: number;
}

/**
 * Makes sure that sessions which wait for a lock do so in the database. A connection that was cut silently would be
 * waited on for ever; and where the database has granted its session the lock, it would keep everybody out for a lease.
 * All sessions are checked by one statement, at a third of the shortest lease. A session that does not wait in two
 * checks, and whose statement is still unanswered then, is ended on both sides.
 */
export class WaitingSessions {
  private readonly waiting = new Set<WaitingSession>();
  private timer: Timer | undefined;

  constructor(
    private readonly server: LockServer,
    private readonly control: ControlConnection,
    private readonly runtime: Runtime,
  ) {}

  /** @returns a function to call when the wait is over */
  watch(connection: SqlConnection, leaseTime: number): () => void {
    const session = { connection, leaseTime };
    this.waiting.add(session);
    this.schedule();
    return () => {
      this.waiting.delete(session);
      if (this.waiting.size === 0) this.timer?.cancel();
      if (this.waiting.size === 0) this.timer = undefined;
    };
  }

  private schedule(): void {
    if (this.timer !== undefined || this.waiting.size === 0) return;
    const shortest = Math.min(...[...this.waiting].map(({ leaseTime }) => leaseTime));
    const timer = this.runtime.timer(Math.max(SHORTEST_PERIOD, shortest / 3), async () => {
      // The control connection may have been cut as well: the second attempt has a new one.
      await this.look().catch(() => this.look().catch(() => {}));
      if (this.timer !== timer) return;
      this.timer = undefined;
      this.schedule();
    });
    this.timer = timer;
  }

  /**
   * Both checks use the same connection: after a restart in between, the answers would be about another server process.
   */
  private look(): Promise<void> {
    return this.control.run(async (control) => {
      const suspects = await this.notWaiting(control, [...this.waiting]);
      if (suspects.length === 0) return;
      await new Promise<void>((resolve) => void this.runtime.timer(SECOND_LOOK, resolve));
      const gone = await this.notWaiting(control, this.stillWaiting(suspects));
      // An answer that has arrived meanwhile is read first.
      await new Promise<void>((resolve) => this.runtime.nextTurn(resolve));
      for (const { connection } of this.stillWaiting(gone)) {
        connection.destroy('the database says that it does not wait for the lock any more');
        await this.server.endIdle(control, connection);
      }
    });
  }

  private async notWaiting(
    control: SqlConnection,
    sessions: readonly WaitingSession[],
  ): Promise<readonly WaitingSession[]> {
    if (sessions.length === 0) return [];
    const ids = sessions.map(({ connection }) => connection.id);
    const running = new Set(await this.server.running(control, ids));
    return sessions.filter(({ connection }) => !running.has(connection.id));
  }

  private stillWaiting(sessions: readonly WaitingSession[]): readonly WaitingSession[] {
    return sessions.filter((session) => this.waiting.has(session));
  }
}
