import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../servers/free-port.js';
import { type Hold, type NetworkConditions, TcpLink } from './tcp-link.js';

/**
 * A proxy on a free loopback port in front of the server on `targetPort`, which simulates network failures. At first,
 * it forwards everything.
 *
 *     const proxy = await startTcpProxy(redis.port);
 *     const client = new Redis(proxy.port);
 *     proxy.cutHalfOpen();
 */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const proxy = new TcpProxy(targetPort, await freePort());
  await proxy.heal();
  return proxy;
}

const TRANSPARENT = {
  delay: 0,
  holdRequest: undefined,
  holdReply: undefined,
  dropAfter: undefined,
  closeOnDrop: false,
} as const;

export class TcpProxy {
  /** The number of connections since the start, without refused ones. */
  accepted = 0;

  readonly #links = new Set<TcpLink>();
  readonly #conditions: NetworkConditions = { ...TRANSPARENT, droppedReplies: 0, requests: 0 };
  #server: Server | undefined;
  #halfOpen = false;

  /** @internal see {@link startTcpProxy} */
  constructor(
    private targetPort: number,
    readonly port: number,
  ) {}

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** The number of open connections, including dead ones. */
  get open(): number {
    return this.#links.size;
  }

  /** The number of open connections that are not dead. */
  get live(): number {
    return [...this.#links].filter(({ dead }) => !dead).length;
  }

  /** The number of chunks from the server that {@link dropReplies} has dropped. */
  get droppedReplies(): number {
    return this.#conditions.droppedReplies;
  }

  /** The number of chunks from clients so far. */
  get requests(): number {
    return this.#conditions.requests;
  }

  /** Delays all data by `ms` in each direction from now on. */
  delay(ms: number): void {
    this.#conditions.delay = ms;
  }

  /**
   * Delays each chunk from now on by this many milliseconds (0: no delay), together with all later data of its
   * connection. Delayed requests arrive even if their client has closed the connection meanwhile. Without an argument,
   * delays no more chunks. Chunks that are already delayed arrive on time, or with {@link letThrough}.
   */
  holdUp(hold: { readonly requests?: Hold; readonly replies?: Hold } = {}): void {
    this.#conditions.holdRequest = hold.requests;
    this.#conditions.holdReply = hold.replies;
  }

  /** The number of connections with delayed requests. */
  get holding(): number {
    return [...this.#links].filter(({ holdsRequests }) => holdsRequests).length;
  }

  /** Stops delaying data, and delivers all delayed data now. */
  letThrough(): void {
    this.holdUp();
    for (const link of [...this.#links]) {
      link.letThrough();
    }
  }

  /**
   * Present and new connections stay open but forward nothing, as if a firewall had forgotten them. After {@link heal},
   * new connections work, but the present ones stay dead.
   */
  cutHalfOpen(): void {
    this.#halfOpen = true;
    for (const link of this.#links) {
      link.die();
    }
  }

  /** Like {@link cutHalfOpen}, but only for present connections with a request that matches this. New ones work. */
  cutHalfOpenAfter(request: RegExp): void {
    for (const link of this.#links) if (link.hasCarried(request)) link.die();
  }

  /**
   * Forwards requests but drops replies, beginning with the first request that matches `after` (default: any). With
   * `close`, the connection is closed when the first reply is dropped. Then the command was executed, but its client
   * does not know this.
   */
  dropReplies(options: { readonly after?: RegExp; readonly close?: boolean } = {}): void {
    this.#conditions.dropAfter = options.after ?? /^/;
    this.#conditions.closeOnDrop = options.close ?? false;
  }

  /** New connections lead to another server, as after a failover behind a load balancer. */
  leadTo(port: number): void {
    this.targetPort = port;
  }

  /** Closes dead connections for both sides, as their keep-alives would after a while. */
  buryDead(): void {
    for (const link of this.#links) {
      if (!link.dead) continue;
      link.close();
      this.#links.delete(link);
    }
  }

  /** Closes all connections. The proxy keeps running. */
  disconnect(): void {
    for (const link of this.#links) {
      link.close();
    }
    this.#links.clear();
  }

  /** Closes all connections, and refuses new ones, like a server that is down. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.disconnect();
    if (server) {
      server.close();
      await once(server, 'close');
    }
  }

  /**
   * Forwards everything again. Closes connections that lost a reply, because the next reply would be mistaken for it.
   */
  async heal(): Promise<void> {
    Object.assign(this.#conditions, TRANSPARENT);
    this.#halfOpen = false;
    for (const link of this.#links) {
      link.settle();
    }
    if (!this.#server) {
      this.#server = createServer((client) => this.#accept(client)).listen(this.port, '127.0.0.1');
      await once(this.#server, 'listening');
      this.#server.unref(); // a test that fails before stop() must not keep its process alive
    }
  }

  /** Stops the proxy permanently. */
  async stop(): Promise<void> {
    await this.refuse();
  }

  #accept(client: Socket): void {
    this.accepted++;
    const link = new TcpLink(client, this.targetPort, this.#conditions, () => this.#links.delete(link));
    this.#links.add(link);
    if (this.#halfOpen) {
      link.die();
    }
  }
}
