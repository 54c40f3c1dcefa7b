import {
  type AcquireAllReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type LineBackend,
  type LockBackend,
  type LockState,
  type LockType,
  type OwnerRef,
  type ReleaseReply,
  type ReleaseRequest,
  type RenewRequest,
  SingleNodeWatch,
  type Subscription,
  type TransferRequest,
  type Wake,
} from '../../../../lib/backends/lock-backend.js';
import { MemoryBackend } from '../../../../lib/backends/redis/in-process/memory-backend.js';
import type { VirtualTime } from '../simulated/virtual-time.js';
import type { ModelledProcess } from './modelled-process.js';
import type { ModelledServer, Socket } from './modelled-server.js';

/**
 * A waiting process sends PINGs on its connection for subscriptions: see lib/backends/redis/pubsub/subscriber-link.ts.
 * In milliseconds.
 */
const PING_INTERVAL = 2_000;

/** The two connections of one process to the server. Nothing is lost, but everything takes time. */
export class ModelledBackend implements LockBackend {
  readonly description = 'modelled';
  readonly synchronizers = undefined;
  readonly health: SingleNodeWatch;
  /** The longest time for an answer, in milliseconds. */
  slowest = 0;
  private readonly commands: Socket = {};
  private readonly subscriber: Socket = {};
  readonly line: LineBackend = {
    listen: (key, clientId, listener) =>
      this.listen((hear) => (this.memory.line as LineBackend).listen(key, clientId, hear), listener),
    begun: () => {},
  };
  private readonly memory: MemoryBackend;

  constructor(
    private readonly time: VirtualTime,
    private readonly process: ModelledProcess,
    private readonly server: ModelledServer,
  ) {
    this.memory = new MemoryBackend({ runtime: process, store: server.store });
    this.health = new SingleNodeWatch(this.description, process, () =>
      this.ask('ping', async () => this.memory.ping?.()),
    );
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    return this.health.health.observe(
      this.ask('acquire', () => this.memory.acquire(request)),
      true,
    );
  }

  canAcquireTogether(): boolean {
    return true;
  }

  acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply> {
    return this.ask('acquire', () => this.memory.acquireAll(requests));
  }

  release(request: ReleaseRequest): Promise<ReleaseReply> {
    return this.ask('release', () => this.memory.release(request));
  }

  transfer(request: TransferRequest): Promise<Acquired | undefined> {
    return this.ask('transfer', () => this.memory.transfer(request));
  }

  renew(request: RenewRequest): Promise<boolean> {
    return this.ask('renew', () => this.memory.renew(request));
  }

  raiseToken(key: string, type: LockType, token: number): Promise<void> {
    return this.ask('token', () => this.memory.raiseToken(key, type, token));
  }

  refreshWaiters(
    places: readonly OwnerRef[],
    waiterTimeout: number,
    keptLonger?: () => void,
  ): Promise<readonly boolean[]> {
    return this.ask('places', () => this.memory.refreshWaiters(places, waiterTimeout, keptLonger));
  }

  removeWaiter(place: OwnerRef): Promise<void> {
    return this.ask('places', () => this.memory.removeWaiter(place));
  }

  forceRelease(key: string): Promise<readonly string[]> {
    return this.ask('force', () => this.memory.forceRelease(key));
  }

  inspect(key: string): Promise<LockState> {
    return this.ask('inspect', () => this.memory.inspect(key));
  }

  subscribe(key: string, type: LockType, clientId: string, listener: (wake: Wake) => void): Subscription {
    return this.listen((hear) => this.memory.subscribe(key, type, clientId, hear), listener);
  }

  private listen(
    subscribe: (hear: (wake: Wake) => void) => Subscription,
    listener: (wake: Wake) => void,
  ): Subscription {
    const { server, process, subscriber } = this;
    let closed = false;
    let atServer: Subscription | undefined;
    const hear = (wake: Wake) => {
      server.messages++;
      server.write(subscriber, () => process.loop.run(server.costs.message, () => closed || listener(wake)));
    };
    const ask = (kind: string, execute: () => Promise<unknown>) => this.ask(kind, execute, subscriber);
    const ready = ask('subscribe', async () => {
      atServer = subscribe(hear);
    });
    const ping = () => {
      process.timer(PING_INTERVAL, () => {
        if (closed) return;
        void ask('ping', async () => this.memory.ping?.());
        ping();
      });
    };
    ping();
    const close = () => {
      closed = true;
      void ask('subscribe', async () => atServer?.close());
    };
    return { ready: ready as Promise<void>, close };
  }

  async close(): Promise<void> {}

  private ask<T>(kind: string, execute: () => Promise<T>, socket: Socket = this.commands): Promise<T> {
    const { time, server, process } = this;
    const { latency, answer, message } = server.costs;
    const sent = time.now;
    return new Promise((resolve, reject) => {
      const answered = (settle: () => void) =>
        server.write(socket, () =>
          process.loop.run(kind === 'ping' ? message : answer, () => {
            this.slowest = Math.max(this.slowest, time.now - sent);
            settle();
          }),
        );
      const run = () =>
        void execute().then(
          (reply) => answered(() => resolve(reply)),
          (error) => answered(() => reject(error)),
        );
      time.after(latency, () => server.receive(kind, run));
    });
  }
}
