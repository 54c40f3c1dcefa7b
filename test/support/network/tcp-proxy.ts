import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../servers/free-port.js';
import { type NetworkConditions, TcpLink } from './tcp-link.js';

/**
 * A proxy on a free loopback port in front of the server on `targetPort`, for the ways in which a network fails. It
 * starts out transparent.
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
  /** Connections made since the start, refused ones apart. */
  accepted = 0;

  readonly #links = new Set<TcpLink>();
  readonly #conditions: NetworkConditions = { ...TRANSPARENT, droppedReplies: 0, requests: 0 };
  #server: Server | undefined;
  #halfOpen = false;

  /** @internal see {@link startTcpProxy} */
  constructor(
    private readonly targetPort: number,
    readonly port: number,
  ) {}

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Connections open now, dead ones included. */
  get open(): number {
    return this.#links.size;
  }

  /** Connections open now that carry something, or would. */
  get live(): number {
    return [...this.#links].filter(({ dead }) => !dead).length;
  }

  /** Pieces of data from the server that {@link dropReplies} swallowed. */
  get droppedReplies(): number {
    return this.#conditions.droppedReplies;
  }

  /** Pieces of data from clients so far. */
  get requests(): number {
    return this.#conditions.requests;
  }

  /** From now on everything takes `ms` longer in each direction. */
  delay(ms: number): void {
    this.#conditions.delay = ms;
  }

  /**
   * From now on each piece of data is delayed by this many milliseconds (0: no delay), and what follows on its
   * connection stays behind it. Requests that are held up arrive even when their client has hung up meanwhile. Without
   * an argument no more are held up; those that are arrive when their time has come, or with {@link letThrough}.
   */
  holdUp(hold: { readonly requests?: () => number; readonly replies?: () => number } = {}): void {
    this.#conditions.holdRequest = hold.requests;
    this.#conditions.holdReply = hold.replies;
  }

  /** Connections on which requests are held up. */
  get holding(): number {
    return [...this.#links].filter(({ holdsRequests }) => holdsRequests).length;
  }

  /** Holds nothing up any more, and everything that was held up arrives now. */
  letThrough(): void {
    this.holdUp();
    for (const link of [...this.#links]) {
      link.letThrough();
    }
  }

  /**
   * Present connections, and new ones, stay open and carry nothing: as if a firewall had forgotten them. Those of now
   * do not come back with {@link heal}; new ones do work then.
   */
  cutHalfOpen(): void {
    this.#halfOpen = true;
    for (const link of this.#links) {
      link.die();
    }
  }

  /** As {@link cutHalfOpen}, for the present connections that have carried a request like this one. New ones work. */
  cutHalfOpenAfter(request: RegExp): void {
    for (const link of this.#links) if (link.hasCarried(request)) link.die();
  }

  /**
   * Requests reach the server, replies vanish, from the first request on that matches `after` (default: any). With
   * `close` the connection breaks with the first reply that vanished: the command was executed, and its client doesn't
   * know.
   */
  dropReplies(options: { readonly after?: RegExp; readonly close?: boolean } = {}): void {
    this.#conditions.dropAfter = options.after ?? /^/;
    this.#conditions.closeOnDrop = options.close ?? false;
  }

  /** Breaks all connections. The proxy keeps running. */
  disconnect(): void {
    for (const link of this.#links) {
      link.close();
    }
    this.#links.clear();
  }

  /** Breaks all connections, and refuses new ones, like a server that is not there. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.disconnect();
    if (server) {
      server.close();
      await once(server, 'close');
    }
  }

  /** Transparent again. Connections that lost a reply break, because the next reply would be mistaken for it. */
  async heal(): Promise<void> {
    Object.assign(this.#conditions, TRANSPARENT);
    this.#halfOpen = false;
    for (const link of this.#links) {
      link.settle();
    }
    if (!this.#server) {
      this.#server = createServer((client) => this.#accept(client)).listen(this.port, '127.0.0.1');
      await once(this.#server, 'listening');
      this.#server.unref(); // a test that failed before stop() does not keep its process alive
    }
  }

  /** Ends it permanently. */
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
