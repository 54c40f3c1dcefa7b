import { connect, type Socket } from 'node:net';
import { DelayLine } from './delay-line.js';

/** Called before a chunk is forwarded. Returns its additional delay in milliseconds. */
export type Hold = (chunk: Buffer) => number;

/** The faults that a proxy applies to its connections. */
export interface NetworkConditions {
  /** The delay in each direction, in milliseconds. */
  delay: number;
  /** The additional delay of a chunk, in milliseconds. `undefined`: no chunk is delayed. */
  holdRequest: Hold | undefined;
  holdReply: Hold | undefined;
  /** Replies are dropped on connections that carry a request that matches this. */
  dropAfter: RegExp | undefined;
  /** The connection is closed when the first reply is dropped. */
  closeOnDrop: boolean;
  droppedReplies: number;
  /** The number of chunks that clients have sent so far. */
  requests: number;
}

/** The client has closed its side of the connection, after all data that it has sent. */
const END = Symbol('end');

/** The number of characters of its first requests that are stored. */
const MEMORY = 100_000;

/** One connection through a proxy. */
export class TcpLink {
  readonly #upstream: Socket;
  readonly #requests = new DelayLine<Buffer | typeof END>((data) => {
    if (data === END)
      this.#upstream.end(); // the server executes the earlier requests
    else if (!this.#dead) this.#upstream.write(data);
  });
  readonly #replies = new DelayLine<Buffer>((data) => this.#dead || this.client.destroyed || this.client.write(data));
  #dead = false;
  #dropping = false;
  #damaged = false;
  #held = false;
  #begin = '';

  constructor(
    private readonly client: Socket,
    targetPort: number,
    private readonly conditions: NetworkConditions,
    closed: () => void,
  ) {
    this.#upstream = connect({ port: targetPort, host: '127.0.0.1', noDelay: true });
    client.setNoDelay(true);
    client.on('data', (data: Buffer) => this.#request(data));
    this.#upstream.on('data', (data) => this.#reply(data));
    client.on('error', () => {}); // 'close' follows
    client.on('close', () => {
      // Delayed requests arrive although the client has closed the connection. The end follows them.
      if (this.holdsRequests) this.#requests.push(END, 0);
      else end();
    });
    this.#upstream.on('error', () => {});
    this.#upstream.on('close', () => end());
    const end = () => {
      // A dead link does not forward that one side has closed the connection.
      if (!this.#dead) {
        this.close();
        closed();
      }
    };
  }

  /** Whether the link has delayed requests. */
  get holdsRequests(): boolean {
    return this.#held && !this.#requests.isEmpty;
  }

  /** Delivers all delayed data now. */
  letThrough(): void {
    this.#requests.flush();
    this.#replies.flush();
  }

  /** Whether one of its first requests matches this. */
  hasCarried(request: RegExp): boolean {
    return request.test(this.#begin);
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** Drops all data from now on, and notifies neither side. */
  die(): void {
    this.#dead = true;
  }

  /**
   * Forwards replies again. Closes the connection if a reply was lost, because the next one would be mistaken for it.
   */
  settle(): void {
    this.#dropping = false;
    if (this.#damaged) {
      this.close();
    }
  }

  /** Closes the connection for both sides. */
  close(): void {
    this.#requests.clear();
    this.#replies.clear();
    this.client.destroy();
    this.#upstream.destroy();
  }

  #request(data: Buffer): void {
    this.conditions.requests++;
    if (this.#begin.length < MEMORY) this.#begin += data.toString('latin1');
    this.#dropping ||= this.conditions.dropAfter?.test(data.toString('latin1')) ?? false;
    const held = this.conditions.holdRequest?.(data) ?? 0;
    this.#held ||= held > 0;
    this.#requests.push(data, this.conditions.delay + held);
  }

  #reply(data: Buffer): void {
    if (!this.#dropping) {
      this.#replies.push(data, this.conditions.delay + (this.conditions.holdReply?.(data) ?? 0));
      return;
    }
    this.#damaged = true;
    this.conditions.droppedReplies++;
    if (this.conditions.closeOnDrop) {
      this.close();
    }
  }
}
