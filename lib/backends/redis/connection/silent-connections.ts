import { deadlineTimer } from '../../runtime.js';
import type { ConnectionContext } from '../links/connection-context.js';
import type { SentCommand } from '../links/link.js';

/** Replaces connections on which nothing arrives any more, because no error reports a half-open connection. */
export class SilentConnections {
  /**
   * @param replaced whether silent connections are replaced: only our own ones, and only if the user has set no time
   *   limit for them
   */
  constructor(
    private readonly replaced: boolean,
    private readonly context: ConnectionContext,
  ) {}

  /**
   * Destroys the connection of an unanswered command when no data has arrived on it for the command timeout.
   *
   * @param latest the command that was written last, if any
   */
  check(latest: () => SentCommand | undefined): void {
    if (!this.replaced) return;
    const { runtime, commandTimeout } = this.context;
    const command = latest();
    const idle = command?.idleSinceWrite;
    if (command === undefined || idle === undefined) return;
    // The timer fires only after Node.js has read what has arrived.
    if (idle < commandTimeout) deadlineTimer(runtime, commandTimeout - idle, () => this.check(latest));
    else command.destroySocket(new Error(`the server sent nothing within ${commandTimeout} ms`));
  }
}
