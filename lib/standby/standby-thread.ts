import type { Worker } from 'node:worker_threads';
import { BackOff } from '../backends/back-off.js';
import type { Runtime } from '../backends/runtime.js';
import { LockConfigurationError } from '../engine/errors.js';
import { type FromThread, type KeptService, LAYOUT, type ToThread } from './messages.js';
import { findThreadFile } from './thread-file.js';

/** How long the thread may take to load, in milliseconds. */
const LOADING_TIME = 20_000;
/** In megabytes. An error in the thread must not take the memory of the process. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };
/** The first and the longest pause before another thread is started, in milliseconds. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;

/** A service that uses the thread, and what the thread reports to it. */
export interface Member extends KeptService {
  connectionChanged(problem: string | undefined): void;
  warn(message: string): void;
  endFlights(): void;
}

/** The standby thread of this process, while a service needs it. If it dies, another one is started after a pause. */
export class StandbyThread {
  private static current: StandbyThread | undefined;
  private static ids = 0;
  /** Why there is no thread now. */
  problem: string | undefined;
  private readonly members = new Map<number, Member>();
  private readonly openings = new Map<number, PromiseWithResolvers>();
  private readonly backOff: BackOff;
  private worker: Worker | undefined;
  private hasLoaded = false;
  /** Whether a thread was ready once, so that a later one is tried again and again. */
  private isProven = false;

  private constructor(private readonly runtime: Runtime) {
    this.backOff = new BackOff(runtime, FIRST_PAUSE, LONGEST_PAUSE);
  }

  static nextId(): number {
    return ++StandbyThread.ids;
  }

  static join(member: Member, runtime: Runtime): StandbyThread {
    StandbyThread.current ??= new StandbyThread(runtime);
    const thread = StandbyThread.current;
    thread.members.set(member.id, member);
    thread.openings.set(member.id, new PromiseWithResolvers());
    if (thread.worker === undefined && thread.problem === undefined) thread.start();
    else if (thread.hasLoaded) thread.open(member);
    return thread;
  }

  leave({ id }: Member): void {
    this.tell({ type: 'close', id });
    this.members.delete(id);
    this.openings.get(id)?.reject(new LockConfigurationError('the lock service was closed while it started'));
    this.openings.delete(id);
    if (this.members.size > 0) return;
    if (StandbyThread.current === this) StandbyThread.current = undefined;
    const { worker } = this;
    this.worker = undefined;
    void worker?.terminate();
  }

  /** Settles when the thread keeps the leases of a service. @throws LockConfigurationError with the reason why it cannot */
  opened(id: number): Promise<void> {
    return this.openings.get(id)?.promise ?? Promise.resolve();
  }

  tell(message: ToThread): void {
    this.worker?.postMessage(message);
  }

  private start(): void {
    let worker: Worker;
    try {
      // Other runtimes may have none.
      const threads = process.getBuiltinModule?.('node:worker_threads') as
        | typeof import('node:worker_threads')
        | undefined;
      if (threads === undefined) throw new Error('this runtime has no worker threads');
      const file = findThreadFile();
      worker = new threads.Worker(file, {
        name: 'nestjs-redis-lock',
        workerData: { isStandby: 'nestjs-redis-lock' },
        resourceLimits: RESOURCE_LIMITS,
        // Whatever instruments the application does not belong into the thread.
        ...(!file.endsWith('.ts') && { execArgv: [] }),
      });
    } catch (error) {
      return this.startAgain((error as Error).message);
    }
    this.worker = worker;
    worker.unref();
    const timer = this.runtime.timer(LOADING_TIME, () => {
      if (!this.hasLoaded) this.ended(worker, `it has not loaded within ${LOADING_TIME / 1_000} s`);
    });
    let reason: string | undefined;
    worker.on('message', (message: FromThread) => {
      if (message.type === 'loaded') timer.cancel();
      if (this.worker === worker) this.heard(message);
    });
    worker.on('error', (error: unknown) => {
      reason = error instanceof Error ? error.message : String(error);
    });
    worker.on('exit', (code) => {
      timer.cancel();
      this.ended(worker, reason ?? `it has ended with the code ${code}`);
    });
  }

  private heard(message: FromThread): void {
    if (message.type === 'loaded') {
      if (message.layout !== LAYOUT) return this.failed('its file belongs to another version of nestjs-redis-lock');
      this.hasLoaded = true;
      this.problem = undefined;
      for (const member of this.members.values()) this.open(member);
      return;
    }
    if (message.type === 'connection') return this.members.get(message.id)?.connectionChanged(message.problem);
    const opening = this.openings.get(message.id);
    if (message.refusal === undefined) {
      this.isProven = true;
      opening?.resolve();
    } else opening?.reject(refused(message.refusal));
  }

  private open(member: Member): void {
    const { id, servers, clientId, clockStart, header, chunks } = member;
    const { leaseTime, keepWhileBlocked, commandTimeout } = member;
    const times = { leaseTime, keepWhileBlocked, commandTimeout };
    this.tell({ type: 'service', service: { id, servers, clientId, clockStart, header, chunks, ...times } });
  }

  private ended(worker: Worker, reason: string): void {
    if (this.worker !== worker) return;
    this.worker = undefined;
    void worker.terminate();
    this.hasLoaded = false;
    this.startAgain(reason);
  }

  private startAgain(reason: string): void {
    if (!this.isProven) return this.failed(reason);
    this.problem = reason;
    const members = [...this.members.values()];
    const longest = Math.max(...members.map(({ commandTimeout }) => commandTimeout));
    // What the thread has sent may be executed until then.
    const pause = Math.max(longest, this.backOff.next());
    for (const member of members)
      member.warn(
        `keepWhileBlocked: the thread has ended: ${reason}. Locks are not kept while the event loop is blocked, until another thread is started in ${Math.round(pause)} ms`,
      );
    this.runtime.timer(pause, () => {
      if (this.members.size === 0) return;
      for (const member of this.members.values()) member.endFlights();
      this.start();
    });
  }

  /** The thread cannot be started, so services that need it are refused. */
  private failed(reason: string): void {
    this.problem = reason;
    for (const opening of this.openings.values()) opening.reject(refused(reason));
    if (StandbyThread.current === this) StandbyThread.current = undefined;
    const { worker } = this;
    this.worker = undefined;
    void worker?.terminate();
  }
}

function refused(reason: string): LockConfigurationError {
  return new LockConfigurationError(`RedisLockModule: keepWhileBlocked: the thread cannot be started: ${reason}`);
}

/** Like `Promise.withResolvers()` of later versions of Node.js. Nobody need listen. */
class PromiseWithResolvers {
  resolve: () => void = () => {};
  reject: (error: Error) => void = () => {};
  readonly promise = new Promise<void>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });

  constructor() {
    this.promise.catch(() => {});
  }
}
