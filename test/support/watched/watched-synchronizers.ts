import { BackendError } from '../../../lib/backends/backend-error.js';
import type { Subscription } from '../../../lib/backends/subscription.js';
import type { SynchronizerBackend } from '../../../lib/backends/synchronizer-backend.js';

export type SynchronizerCommand = Exclude<keyof SynchronizerBackend, 'subscribe'>;

/** More than any test sends. */
const MOST_COMMANDS = 100_000;

/** How a test interferes with a command. `execute` runs the command and returns its reply. */
// biome-ignore lint/suspicious/noExplicitAny: the answers differ from command to command
type Disturbance = (execute: () => Promise<any>, request: unknown) => Promise<any>;

/** A subscription of waiters to one semaphore or latch. */
interface Wait {
  readonly key: string;
  confirmed: boolean;
  /** Whether the backend has answered a request that was sent after the confirmation. Then no release was missed. */
  checked: boolean;
}

/** Semaphores and latches of a real backend. Counts the requests, and lets a test interfere with them. */
export class WatchedSynchronizers {
  /** The names of all commands that were sent so far. */
  readonly commands: SynchronizerCommand[] = [];
  /** The wrapped backend that is given to the service. */
  readonly port: SynchronizerBackend;

  private readonly disturbances = new Map<SynchronizerCommand, Disturbance>();
  private readonly waits = new Set<Wait>();
  private underWay = 0;

  constructor(backend: SynchronizerBackend) {
    this.port = new Proxy(backend, {
      get: (target, name) => {
        const method = Reflect.get(target, name).bind(target);
        if (name === 'subscribe')
          return (key: string, ...args: unknown[]) => this.watchSubscription(key, method(key, ...args));
        return (...args: unknown[]) => this.run(name as SynchronizerCommand, args, () => method(...args));
      },
    });
  }

  /** Subscriptions that are open. */
  get subscriptions(): number {
    return this.waits.size;
  }

  /** No request is under way, and none will be sent until a message arrives, a timer fires or a caller arrives. */
  get isQuiet(): boolean {
    return this.underWay === 0 && [...this.waits].every(({ checked }) => checked);
  }

  count(command: SynchronizerCommand): number {
    return this.commands.filter((name) => name === command).length;
  }

  /** Applies the disturbance to these commands from now on. */
  disturb(disturbance: Disturbance, ...commands: SynchronizerCommand[]): void {
    for (const command of commands) this.disturbances.set(command, disturbance);
  }

  /** Commands are executed and answered as usual again. */
  heal(): void {
    this.disturbances.clear();
  }

  private async run(command: SynchronizerCommand, args: unknown[], execute: () => Promise<unknown>): Promise<unknown> {
    this.commands.push(command);
    // With the memory backend, an endless loop would block the event loop, so jest's timeout could not fire.
    if (this.commands.length > MOST_COMMANDS)
      throw new BackendError(
        `too many requests in one test (${this.commands.length}); the last one was ${command}()`,
        'denied',
        'refused',
      );
    const confirmed = [...this.waits].filter((wait) => wait.key === args[0] && wait.confirmed);
    const disturbance = this.disturbances.get(command);
    this.underWay++;
    try {
      const reply = await (disturbance === undefined ? execute() : disturbance(execute, args));
      for (const wait of confirmed) wait.checked = true;
      return reply;
    } finally {
      this.underWay--;
    }
  }

  private watchSubscription(key: string, subscription: Subscription): Subscription {
    const wait: Wait = { key, confirmed: false, checked: false };
    this.waits.add(wait);
    void subscription.ready.then(() => {
      wait.confirmed = true;
    });
    const close = () => {
      this.waits.delete(wait);
      subscription.close();
    };
    return { ready: subscription.ready, close };
  }
}
