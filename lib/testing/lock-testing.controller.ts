import { AssertionError } from 'node:assert';
import { BackendError } from '../backends/backend-error.js';
import { type LockBackend, SingleNodeWatch } from '../backends/lock-backend.js';
import { printsAs } from '../backends/prints-as.js';
import { MemoryBackend } from '../backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../backends/redis/in-process/memory-store.js';
import type { Runtime } from '../backends/runtime.js';
import { nodeRuntime } from '../engine/node-runtime.js';
import type { LockOptions } from '../engine/terms/lock-options.js';
import { createLockServiceWith } from '../service/create-lock-service.js';
import type { LockService } from '../service/lock-service.js';
import type { RedisLockOptions } from '../service/redis-lock-options.js';
import { settle, type TestClock, TestRuntime } from './test-clock.js';

/** The simulated other process logs nothing. */
const SILENT = { warn() {}, error() {} };

/** A lock that is held as another process would hold it. @publicApi */
export interface HeldByAnother extends AsyncDisposable {
  /** Releases it to the next waiter. */
  release(): Promise<void>;
}

/**
 * Controls the locks of an application from a test. Get it from an application with LockTestingModule, or create one
 * without a module:
 *
 * ```ts
 * const testing = new LockTestingController();
 * const orders = attachLockService(new OrdersService(), testing.locks);
 * ```
 *
 * Each controller has its own store, so two controllers never share locks.
 *
 * @publicApi
 */
export class LockTestingController {
  /** The clock of these locks. */
  readonly clock: TestClock;
  /** The service under test. */
  readonly locks: LockService;
  /** Another process on the same store. It works even while the backend fails. */
  private readonly another: LockService;
  private isDown = false;

  /** @throws LockConfigurationError naming the option that is wrong */
  constructor(options: LockTestingOptions = {}) {
    const runtime = new TestRuntime();
    const store = new MemoryStore();
    const backend = () => new MemoryBackend({ runtime, store });
    this.clock = { advance: (time) => runtime.advance(time) };
    this.another = createLockServiceWith(runtime, {
      ...options,
      backend: backend(),
      shutdownTimeout: 0,
      logger: SILENT,
    });
    this.locks = createLockServiceWith(runtime, {
      ...options,
      backend: failingBackend(backend(), runtime, () => this.isDown),
    });
  }

  /**
   * Holds the lock as another process would, until it is released. Without a `leaseTime`, its lease is renewed.
   *
   * @throws LockBusyError when the lock is held already (unless `waitTime` is given)
   */
  async holdByAnother(name: string, options?: LockOptions): Promise<HeldByAnother> {
    const lease = await nodeRuntime.detached(() => this.another.acquire(name, { waitTime: 0, ...options }));
    const release = () => lease.release();
    return { release, [Symbol.asyncDispose]: release };
  }

  /**
   * Makes the holder lose the lock, as if Redis had lost the key: the signal of the lease is aborted, and the lock is
   * free.
   *
   * @throws AssertionError when it is free
   */
  async loseLease(name: string): Promise<void> {
    const { isDown } = this;
    this.isDown = false;
    const wasHeld = await this.locks.forceRelease(name).finally(() => {
      this.isDown = isDown;
    });
    if (!wasHeld) throw notHeld(name, 'loseLease');
    await settle();
  }

  /**
   * Makes every call to the backend fail, as when Redis is down, until {@link restoreBackend}.
   *
   * @returns a function that restores it
   */
  failBackend(): () => void {
    this.isDown = true;
    return () => this.restoreBackend();
  }

  /** Ends {@link failBackend}. */
  restoreBackend(): void {
    this.isDown = false;
  }

  /**
   * Asserts that somebody holds the lock: the application, or {@link holdByAnother}. Works even while the backend
   * fails.
   *
   * @throws AssertionError when the lock is free
   */
  async expectHeld(name: string): Promise<void> {
    if (!(await this.another.isLocked(name))) throw notHeld(name, 'expectHeld');
  }

  /**
   * Asserts that the lock is free. Works even while the backend fails.
   *
   * @throws AssertionError when somebody holds the lock
   */
  async expectFree(name: string): Promise<void> {
    if (await this.another.isLocked(name)) {
      const message = `expectFree('${name}'): the lock is held`;
      throw new AssertionError({ message, actual: 'held', expected: 'free', operator: 'expectFree' });
    }
  }

  /** Closes both services. LockTestingModule calls it when the application closes. */
  async close(): Promise<void> {
    this.isDown = false;
    await Promise.all([this.locks.close(), this.another.close()]);
  }
}

function notHeld(name: string, operator: string): AssertionError {
  const message = `${operator}('${name}'): nobody holds the lock`;
  return new AssertionError({ message, actual: 'free', expected: 'held', operator });
}

/**
 * Options of `LockTestingModule.forRoot`: those of RedisLockModule, without the place where locks are kept.
 * @publicApi
 */
export type LockTestingOptions = Omit<RedisLockOptions, 'connection' | 'backend' | 'quorum'>;

/** Methods that would not send a request to a server. */
const LOCAL: readonly (string | symbol)[] = [
  'canAcquireTogether',
  'subscribe',
  'listen',
  'listenToClient',
  'begun',
  'keepAlive',
  'close',
];

/** A backend whose calls fail while `isDown()`, as if Redis were down. */
function failingBackend(backend: LockBackend, runtime: Runtime, isDown: () => boolean): LockBackend {
  const ping = () => watch.health.observe(isDown() ? Promise.reject(down()) : Promise.resolve(), false);
  const watch: SingleNodeWatch = new SingleNodeWatch(backend.description, runtime, ping);
  const observe: Observe = (reply) => watch.health.observe(reply, false);
  const part = <Part extends object>(whole: Part | undefined) => whole && failing(whole, isDown, observe);
  const { synchronizers, flights, line, waits, directory } = backend;
  return failing(backend, isDown, observe, {
    synchronizers: part(synchronizers),
    flights: part(flights),
    line: part(line),
    waits: part(waits),
    directory: part(directory),
    health: watch,
  });
}

type Observe = (reply: Promise<unknown>) => Promise<unknown>;

function failing<T extends object>(target: T, isDown: () => boolean, observe: Observe, others: Partial<T> = {}): T {
  return new Proxy(target, {
    get(_, property) {
      if (property in others) return others[property as keyof T];
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) =>
        LOCAL.includes(property)
          ? value.apply(target, args)
          : observe(isDown() ? Promise.reject(down()) : Promise.resolve(value.apply(target, args)));
    },
  });
}

function down(): BackendError {
  return new BackendError('failBackend() was called in this test', 'unavailable', 'refused');
}

printsAs(LockTestingController, () => ({}));
