import type { Runtime, Timer } from '../../backend.js';
import type { SqlConnection } from '../driver/sql-connection.js';
import type { LockServer } from '../server/lock-server.js';
import type { ControlConnection } from './control-connection.js';

/** The time between the first check that finds a session not waiting and the second one, in milliseconds. */
const SECOND_CHECK = 1_000;
/** The shortest time between two checks of the sessions, even with shorter leases, in milliseconds. */
const SHORTEST_PERIOD = 1_000;

/** A session that waits for a lock, according to this process. */
interface WaitingSession {
  readonly connection: SqlConnection;
  readonly leaseTime: number;
}

/**
 * Makes sure that sessions which wait for a lock do so in the database. Otherwise a caller would wait forever on a
 * connection that was cut silently. If the database has granted the lock to the session of such a connection, nobody
 * else could get the lock for the length of a lease. One statement checks all sessions, three times per shortest lease.
 * If two checks in a row find that a session does not wait, and its statement is still unanswered, the session is ended
 * on both sides.
 */
export class SilentSessions {
  private readonly waiting = new Set<WaitingSession>();
  private timer: Timer | undefined;

  constructor(
    private readonly server: LockServer,
    private readonly control: ControlConnection,
    private readonly runtime: Runtime,
  ) {}

  /** @returns a function to call when the session no longer waits */
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
      // The control connection may have been cut as well. The second attempt uses a new one.
      await this.check().catch(() => this.check().catch(() => {}));
      if (this.timer !== timer) return;
      this.timer = undefined;
      this.schedule();
    });
    this.timer = timer;
  }

  /**
   * Both checks use the same connection. After a restart in between, the second answer would be about another server
   * process.
   */
  private check(): Promise<void> {
    return this.control.run(async (control) => {
      const suspects = await this.notWaiting(control, [...this.waiting]);
      if (suspects.length === 0) return;
      await new Promise<void>((resolve) => void this.runtime.timer(SECOND_CHECK, resolve));
      const gone = await this.notWaiting(control, this.stillWaiting(suspects));
      // Reads an answer that may have arrived meanwhile.
      await new Promise<void>((resolve) => this.runtime.nextTurn(resolve));
      for (const { connection } of this.stillWaiting(gone)) {
        connection.destroy('the database reports that it no longer waits for the lock');
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
