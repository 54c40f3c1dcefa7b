import { BackendError } from '../../lock-backend.js';
import { deadlineTimer, type Runtime } from '../../runtime.js';
import { timeoutError } from '../calls/call-errors.js';
import { silenceAdvice } from '../connection/connection-advice.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { errorCode, messageOf, ServerError, withoutSecrets } from '../connection/redis-errors.js';
import type { Link } from '../links/link.js';

/** Commands that are sent to one node and are not scripts. Each is answered within the command time-out. */
export class NodeCommands {
  constructor(
    private readonly connection: RedisConnection,
    private readonly runtime: Runtime,
    private readonly commandTimeout: number,
  ) {}

  /** @throws BackendError */
  send(link: Link, name: string, args: readonly string[]): Promise<unknown> {
    const { connection, runtime, commandTimeout } = this;
    return new Promise((resolve, reject) => {
      const command = runtime.detached(() => link.send(name, args));
      const giveUp = () => {
        command.abandon();
        const advice = silenceAdvice(connection.topology, command);
        const wasSent = command.socket !== undefined;
        reject(timeoutError(connection, commandTimeout, 'refused', advice, undefined, wasSent));
      };
      const timer = deadlineTimer(runtime, commandTimeout, giveUp, 'keep-alive');
      command.reply.then(resolve, (error: unknown) => reject(this.failure(name, error))).finally(() => timer.cancel());
    });
  }

  private failure(name: string, error: unknown): BackendError {
    if (error instanceof BackendError) return error;
    const message = messageOf(error);
    const isDenied = errorCode(message) === 'NOPERM';
    const advice = isDenied ? `; give the user +${name}, see docs/permissions.md` : '';
    const reason = `${name.toUpperCase()} failed: ${message}${advice}`;
    const cause = withoutSecrets(error);
    return new ServerError(this.connection.description, reason, isDenied ? 'denied' : 'unavailable', 'refused', {
      cause,
    });
  }
}
