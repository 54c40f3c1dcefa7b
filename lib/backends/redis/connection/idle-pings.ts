import { deadlineTimer, type Timer } from '../../runtime.js';
import type { ConnectionContext } from '../links/connection-context.js';
import type { Link } from '../links/link.js';
import type { Topology } from '../links/topology.js';
import type { SilentConnections } from './silent-connections.js';

/** In milliseconds. Firewalls forget idle connections after minutes. */
const INTERVAL = 30_000;

/**
 * Sends a PING on each of our connections now and then. A connection that has gone silent while nobody used it is
 * replaced before somebody does, and a firewall does not forget a connection that is used.
 */
export class IdlePings {
  private timer: Timer | undefined;
  private closed = false;

  constructor(
    private readonly topology: Topology,
    private readonly context: ConnectionContext,
    private readonly silent: SilentConnections,
  ) {}

  start(): void {
    if (!this.topology.replacesSilentConnections || this.closed) return;
    this.timer = this.context.runtime.timer(INTERVAL, () => {
      for (const master of this.topology.masters()) this.ping(master);
      this.start();
    });
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  private ping(link: Link): void {
    const { runtime, commandTimeout } = this.context;
    const command = link.send('ping', []);
    const timer = deadlineTimer(runtime, commandTimeout, () => {
      command.abandon();
      this.silent.check(() => command);
    });
    const answered = () => timer.cancel();
    command.reply.then(answered, answered);
  }
}
