import type { BackendError } from './backend-error.js';
import type { Runtime } from './runtime.js';

/** How long an outage lasts after the last refusal, in milliseconds. Refused callers ask again within a second. */
const REFUSAL_LASTS = 2_000;

/**
 * Whether one node answers. An outage begins with the first request that fails, or that gets no answer within the
 * command time-out. It ends with any answer.
 *
 * A node that answers with a temporary error (LOADING, OOM, CLUSTERDOWN, …) does not grant locks either, although PING
 * and renewals may succeed. Such an outage ends when an acquisition succeeds again, or when none has been refused for
 * two seconds.
 *
 * @publicApi
 */
export class NodeHealth {
  private outageSince: number | undefined;
  private failure: string | undefined;
  private refused = false;
  private lastAnswer = Number.NEGATIVE_INFINITY;
  private lastRefusal = Number.NEGATIVE_INFINITY;

  /**
   * @param description for logs: `redis 127.0.0.1:6379/0`. It must not contain a secret
   * @param onChange called when an outage begins or ends
   */
  constructor(
    readonly description: string,
    private readonly runtime: Pick<Runtime, 'monotonic'>,
    private readonly onChange: (node: NodeHealth) => void,
  ) {}

  /** When the present outage began, on the monotonic clock; undefined: there is none. */
  get since(): number | undefined {
    return this.outageSince;
  }

  /** Why the last request of the present outage failed, if that is known, for logs and errors. */
  get reason(): string | undefined {
    return this.outageSince === undefined ? undefined : this.failure;
  }

  /** Whether the last request of the present outage failed because the node answered with an error that is known. */
  get refuses(): boolean {
    return this.refused && this.reason !== undefined;
  }

  /** When the node last answered, on the monotonic clock; `-Infinity`: never. */
  get answeredAt(): number {
    return this.lastAnswer;
  }

  /** @param taking whether the request was meant to take something, such as a lock */
  answered(taking: boolean): void {
    this.lastAnswer = this.runtime.monotonic();
    if (this.outageSince === undefined) return;
    if (!taking && this.lastAnswer - this.lastRefusal < REFUSAL_LASTS) return;
    this.outageSince = undefined;
    this.onChange(this);
  }

  /**
   * @param refused whether the node answered with an error; false if there was no answer
   * @param reason what the node answered, or why there was no answer, as far as that is known
   */
  failed(refused: boolean, reason?: string): void {
    const now = this.runtime.monotonic();
    this.failure = reason;
    this.refused = refused;
    if (refused) this.lastRefusal = now;
    if (this.outageSince !== undefined) return;
    this.outageSince = now;
    this.onChange(this);
  }

  /** Records the outcome of a request. */
  observe<T>(reply: Promise<T>, taking: boolean): Promise<T> {
    reply.then(
      () => this.answered(taking),
      ({ kind }: BackendError) => {
        if (kind === 'unavailable') this.failed(taking);
        else if (kind !== 'closed') this.answered(false);
      },
    );
    return reply;
  }
}

/**
 * Reports which nodes of a backend do not answer. Without such reports, a caller waits as long as its `waitTime`
 * allows, even during an outage.
 *
 * @publicApi
 */
export interface NodeWatch {
  /** The node that has this key at present. */
  node(key: string): NodeHealth;

  /** Sends one PING to each node that has one of these keys. The outcome is recorded in the node's health. */
  ping(keys: Iterable<string>): void;

  /** Calls `listener` whenever the outage of a node begins or ends. There can be only one listener. */
  listen(listener: (node: NodeHealth) => void): void;
}

/** The {@link NodeWatch} of a backend that consists of a single node. */
export class SingleNodeWatch implements NodeWatch {
  readonly health: NodeHealth;
  private listener: (node: NodeHealth) => void = () => {};
  private pinging = false;

  /** @param sendPing sends a request that is {@link NodeHealth.observe}d like all others */
  constructor(
    description: string,
    runtime: Pick<Runtime, 'monotonic'>,
    private readonly sendPing: () => Promise<unknown>,
  ) {
    this.health = new NodeHealth(description, runtime, (node) => this.listener(node));
  }

  node(): NodeHealth {
    return this.health;
  }

  ping(): void {
    if (this.pinging) return;
    this.pinging = true;
    const end = () => {
      this.pinging = false;
    };
    this.sendPing().then(end, end);
  }

  listen(listener: (node: NodeHealth) => void): void {
    this.listener = listener;
  }
}
