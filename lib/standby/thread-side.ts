import dns from 'node:dns';
import type { MessagePort } from 'node:worker_threads';
import { QuorumBackend } from '../backends/quorum/quorum-backend.js';
import type { Connection } from '../backends/redis/links/connection.js';
import { RedisBackend } from '../backends/redis/redis-backend.js';
import type { Runtime, Timer } from '../backends/runtime.js';
import { nodeRuntime } from '../engine/node-runtime.js';
import { beatInterval, type FromThread, type KeptService, LAYOUT, silenceOfBlock, type ToThread } from './messages.js';
import { BEAT, BEAT_WALL, SAID, SlotChunk, type SlotContents, until } from './slots.js';

/** How many renewals are begun in one turn, and how many may be under way. */
const MOST_PER_TURN = 512;
const MOST_UNDER_WAY = 4_096;
/** How long answers are waited for when so many are under way, in milliseconds. */
const ANSWER_PAUSE = 1;
/** The shortest and the longest pause after a failed renewal, in milliseconds. In between, a twentieth of the lease. */
const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 1_000;
/** How often a block is noted for others, and how long the note is kept, in milliseconds. */
const NOTE_INTERVAL = 5_000;
const NOTE_LIFETIME = 30_000;

/** Runs in the standby thread: see README.md. */
export function runStandby(port: MessagePort): void {
  const services = new Map<number, ServiceKeeper>();
  const tell = (message: FromThread) => port.postMessage(message);
  reuseAddresses();
  port.on('message', (message: ToThread) => {
    if (message.type === 'service') {
      const { id } = message.service;
      try {
        services.set(id, new ServiceKeeper(message.service, tell, runtimeFor(message.service), openBackend));
        tell({ type: 'opened', id });
      } catch (error) {
        tell({ type: 'opened', id, refusal: (error as Error).message });
      }
      return;
    }
    const service = services.get(message.id);
    if (message.type === 'chunk') service?.addChunk(message.chunk);
    else if (message.type === 'servers') service?.connect(message.servers);
    else {
      service?.close();
      services.delete(message.id);
    }
  });
  tell({ type: 'loaded', layout: LAYOUT });
}

export type KeeperBackend = Pick<RedisBackend, 'renew' | 'ping' | 'close' | 'connectionError'> &
  Partial<Pick<RedisBackend, 'synchronizers' | 'directory'>>;

/** What the thread knows of the slots of a chunk: when to renew next, if the slot still has the same state. */
interface Chunk {
  readonly slots: SlotChunk;
  readonly next: Float64Array;
  readonly states: Int32Array;
}

interface PermitRequest {
  readonly ids: string[];
  readonly held: Promise<readonly boolean[]>;
}

/** This thread, with the monotonic clock of the event loop. */
function runtimeFor({ clockStart }: KeptService): Runtime {
  return { ...nodeRuntime, monotonic: () => Number(process.hrtime.bigint() - clockStart) / 1e6 };
}

/** Renews the leases of one service while its event loop is blocked. */
export class ServiceKeeper {
  private readonly chunks: Chunk[] = [];
  private backend: KeeperBackend;
  private timer: Timer;
  /** Permits whose renewal is sent at the end of this turn, by the keys of their semaphores. */
  private readonly permits = new Map<string, PermitRequest>();
  private underWay = 0;
  private isScanning = false;
  private pingedAt = Number.NEGATIVE_INFINITY;
  private problem: string | undefined;
  /** When others were told that the loop is blocked. */
  private notedAt = Number.NEGATIVE_INFINITY;
  private closed = false;

  constructor(
    private readonly service: KeptService,
    private readonly tell: (message: FromThread) => void,
    private readonly runtime: Runtime,
    private readonly open: (service: KeptService) => KeeperBackend,
  ) {
    for (const chunk of service.chunks) this.addChunk(chunk);
    this.backend = open(service);
    this.timer = this.checkLater();
  }

  addChunk({ size, width, memory }: Pick<SlotChunk, 'size' | 'width' | 'memory'>): void {
    const slots = new SlotChunk(size, width, this.service.clientId, memory);
    this.chunks.push({ slots, next: new Float64Array(size), states: new Int32Array(size) });
  }

  connect(servers: KeptService['servers']): void {
    const former = this.backend;
    this.backend = this.open({ ...this.service, servers });
    this.pingedAt = Number.NEGATIVE_INFINITY;
    former.close().catch(() => {});
  }

  close(): void {
    this.closed = true;
    this.timer.cancel();
    this.backend.close().catch(() => {});
  }

  /** How long ago the event loop has given a sign of life, in milliseconds. */
  private silence(now: number): number {
    const { header } = this.service;
    const wall = -until(Atomics.load(header, BEAT_WALL), this.runtime.wall());
    return Math.max(-until(Atomics.load(header, BEAT), now), wall);
  }

  private checkLater(): Timer {
    return this.runtime.timer(beatInterval(this.service.leaseTime) / 4, () => {
      this.timer = this.checkLater();
      this.check();
    });
  }

  private check(): void {
    const { leaseTime } = this.service;
    const now = this.runtime.monotonic();
    if (now - this.pingedAt >= leaseTime / 3) this.ping(now);
    if (this.mayRenew(now)) this.scan();
    const silence = this.silence(now);
    if (silence > leaseTime / 3 && now - this.notedAt >= NOTE_INTERVAL && this.hasLeases()) this.note(silence, now);
  }

  private mayRenew(now: number): boolean {
    const { leaseTime, keepWhileBlocked } = this.service;
    const silence = this.silence(now);
    return !this.closed && silence >= silenceOfBlock(leaseTime) && silence < keepWhileBlocked;
  }

  /** Writes to Redis that the loop is blocked, for `clients()` of other processes. Nothing waits for the answer. */
  private note(silence: number, now: number): void {
    this.notedAt = now;
    this.backend.directory?.noteBlock(this.service.clientId, silence, NOTE_LIFETIME).catch(() => {});
  }

  private hasLeases(): boolean {
    return this.chunks.some(({ slots }) => slots.hasLeases());
  }

  /** Shows that the connection works before it is needed. */
  private ping(now: number): void {
    this.pingedAt = now;
    const { backend } = this;
    backend.ping().then(
      () => this.noteProblem(backend, undefined),
      (error: Error) => this.noteProblem(backend, (backend.connectionError ?? error).message),
    );
  }

  private noteProblem(backend: KeeperBackend, problem: string | undefined): void {
    if (backend !== this.backend || problem === this.problem || this.closed) return;
    this.problem = problem;
    this.tell({ type: 'connection', id: this.service.id, problem });
  }

  private scan(): void {
    if (this.isScanning) return;
    this.isScanning = true;
    const slots = this.dueSlots();
    const turn = () => {
      const now = this.runtime.monotonic();
      for (let begun = 0; begun < MOST_PER_TURN && this.underWay < MOST_UNDER_WAY && this.mayRenew(now); ) {
        const { done, value } = slots.next();
        if (done) {
          this.isScanning = false;
          return;
        }
        if (this.renew(value.chunk, value.slot, now)) begun++;
      }
      if (!this.mayRenew(now)) this.isScanning = false;
      else if (this.underWay < MOST_UNDER_WAY) this.runtime.nextTurn(turn);
      else this.runtime.timer(ANSWER_PAUSE, turn);
    };
    turn();
  }

  private *dueSlots(): Generator<{ readonly chunk: Chunk; readonly slot: number }> {
    for (const chunk of this.chunks) for (let slot = 0; slot < chunk.slots.size; slot++) yield { chunk, slot };
  }

  /** @returns whether a request was sent */
  private renew(chunk: Chunk, slot: number, now: number): boolean {
    const { slots, next, states } = chunk;
    const state = slots.idleState(slot);
    if (state === undefined || slots.isOverLimit(slot, now)) return false;
    if (states[slot] === state && next[slot] > now) return false;
    // Leases that are due soon are renewed too, so that renewals travel in few commands.
    if (slots.untilDue(slot, now) > slots.leaseTime(slot) / 60) return false;
    const contents = slots.begin(slot, state);
    if (contents === undefined) return false;
    states[slot] = state;
    this.underWay++;
    const settle = (pause: number) => {
      this.underWay--;
      next[slot] = now + pause;
      slots.end(slot, state);
    };
    this.send(contents).then(
      (isHeld) => {
        slots.say(slot, state, isHeld ? now : 'gone');
        Atomics.add(this.service.header, SAID, 1);
        settle(isHeld ? contents.leaseTime / 3 : Number.POSITIVE_INFINITY);
      },
      () => settle(Math.min(LONGEST_PAUSE, Math.max(SHORTEST_PAUSE, contents.leaseTime / 20))),
    );
    return true;
  }

  private async send({ key, owner, type, leaseTime }: SlotContents): Promise<boolean> {
    if (type !== 'semaphore') return this.backend.renew({ key, owner, type, leaseTime });
    const request = this.permits.get(key) ?? this.nextPermits(key, leaseTime);
    const index = request.ids.push(owner) - 1;
    return (await request.held)[index];
  }

  /** Permits of one semaphore travel together. */
  private nextPermits(key: string, leaseTime: number): PermitRequest {
    const ids: string[] = [];
    const held = Promise.resolve().then(() => {
      this.permits.delete(key);
      return this.backend.synchronizers?.renewPermits(key, ids, leaseTime) ?? [];
    });
    const request = { ids, held };
    this.permits.set(key, request);
    return request;
  }
}

/** @throws Error when the settings cannot be used in the thread */
function openBackend({ servers, commandTimeout }: KeptService): KeeperBackend {
  const nodes = servers.connections.map(
    (connection) =>
      new RedisBackend({
        connection: connection as Connection,
        runtime: nodeRuntime,
        commandTimeout,
        shardedPubSub: 'off',
        minReplicas: 0,
        onError: () => {}, // a PING says so
        standby: true,
      }),
  );
  if (!servers.isQuorum) return nodes[0];
  const nodeTimeout = Math.min(500, commandTimeout);
  return new QuorumBackend({ nodes, runtime: nodeRuntime, nodeTimeout, restores: false }) as unknown as KeeperBackend;
}

/** How long a name may take before its last address is used, in milliseconds. */
const LOOKUP_TIME = 200;

type Lookup = (hostname: string, options: object, callback: (...answer: unknown[]) => void) => void;

/** Names are looked up in threads of libuv, which the work that blocks the event loop may keep busy. */
function reuseAddresses(): void {
  const lookup = dns.lookup as unknown as Lookup;
  const known = new Map<string, unknown[]>();
  const reusing = (hostname: string, options: object, callback: (...answer: unknown[]) => void) => {
    if (typeof options === 'function') return lookup(hostname, {}, options as typeof callback);
    const name = JSON.stringify([hostname, options]);
    let isAnswered = false;
    const answer = (values: unknown[]) => {
      if (!isAnswered) callback(...values);
      isAnswered = true;
    };
    const last = known.get(name);
    const timer = last && setTimeout(() => answer(last), LOOKUP_TIME);
    lookup(hostname, options, (...values) => {
      clearTimeout(timer);
      if (values[0] === null) known.set(name, values);
      answer(values[0] === null ? values : (last ?? values));
    });
  };
  Object.assign(dns, { lookup: reusing });
}
