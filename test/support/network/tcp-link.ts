import { connect, type Socket } from 'node:net';
import { DelayLine } from './delay-line.js';

/** What a proxy does to the connections that go through it. */
export interface NetworkConditions {
  /** Milliseconds that everything takes longer, in each direction. */
  delay: number;
  /** Milliseconds that the next piece of data is held up on top of that; undefined: none is. */
  holdRequest: (() => number) | undefined;
  holdReply: (() => number) | undefined;
  /** Replies vanish on connections that carry a request like this one. */
  dropAfter: RegExp | undefined;
  /** The connection breaks with the first reply that vanishes. */
  closeOnDrop: boolean;
  droppedReplies: number;
  /** Pieces of data that clients have sent so far. */
  requests: number;
}

/** The client's end of a connection, behind what it has sent. */
const END = Symbol('end');

/** So many characters of its first requests are remembered. */
const MEMORY = 100_000;

/** One connection through a proxy. */
export class TcpLink {
  readonly #upstream: Socket;
  readonly #requests = new DelayLine<Buffer | typeof END>((data) => {
    if (data === END)
      this.#upstream.end(); // the server executes what came before it
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
      // What was held up arrives although its sender has hung up, and so does the end, after it.
      if (this.holdsRequests) this.#requests.push(END, 0);
      else end();
    });
    this.#upstream.on('error', () => {});
    this.#upstream.on('close', () => end());
    const end = () => {
      // Like all else, the end of one side does not get through a dead link.
      if (!this.#dead) {
        this.close();
        closed();
      }
    };
  }

  /** Requests wait here that were held up. */
  get holdsRequests(): boolean {
    return this.#held && !this.#requests.isEmpty;
  }

  /** What is under way arrives now. */
  letThrough(): void {
    this.#requests.flush();
    this.#replies.flush();
  }

  /** Whether it has carried a request like this one: one of its first. */
  hasCarried(request: RegExp): boolean {
    return request.test(this.#begin);
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** From now on nothing gets through, and neither side is notified. */
  die(): void {
    this.#dead = true;
  }

  /** Replies get through again. If one was lost, the connection breaks: the next reply would be mistaken for it. */
  settle(): void {
    this.#dropping = false;
    if (this.#damaged) {
      this.close();
    }
  }

  /** Breaks the connection for both sides. */
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
    const held = this.conditions.holdRequest?.() ?? 0;
    this.#held ||= held > 0;
    this.#requests.push(data, this.conditions.delay + held);
  }

  #reply(data: Buffer): void {
    if (!this.#dropping) {
      this.#replies.push(data, this.conditions.delay + (this.conditions.holdReply?.() ?? 0));
      return;
    }
    this.#damaged = true;
    this.conditions.droppedReplies++;
    if (this.conditions.closeOnDrop) {
      this.close();
    }
  }
}
