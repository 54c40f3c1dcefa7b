import { BackendError, type LockBackend, type Wake } from '../../lib/backends/lock-backend.js';
import type { Runtime } from '../../lib/backends/runtime.js';

/** How a network treats commands and messages; probabilities between 0 and 1. */
export interface NetworkConditions {
  /** The longest delay in each direction, in ms. */
  delay: number;
  /** A command never arrives. */
  lost: number;
  /** A command is executed, and its answer does not arrive. */
  unanswered: number;
  /** A message to a subscriber does not arrive. */
  unheard: number;
}

const COMMAND_TIMEOUT = 1_000;

const UNDISTURBED: readonly (string | symbol)[] = ['canAcquireTogether', 'close', 'listenToClient'];

/** A backend behind a network that delays and loses, by the random numbers of a runtime. While it is cut off, nothing gets through. */
export class UnreliableNode {
  cutOff = false;
  readonly backend: LockBackend;

  constructor(
    private readonly node: LockBackend,
    private readonly runtime: Runtime,
    private readonly conditions: NetworkConditions,
  ) {
    this.backend = new Proxy(node, {
      get: (target, name, receiver) => {
        const member = Reflect.get(target, name, receiver);
        if (name === 'subscribe') return this.subscribe;
        if (typeof member !== 'function') return member;
        if (UNDISTURBED.includes(name)) return member.bind(target);
        return (...args: unknown[]) => this.run(() => member.apply(target, args));
      },
    });
  }

  private run(command: () => Promise<unknown>): Promise<unknown> {
    const { lost, unanswered } = this.conditions;
    return new Promise((resolve, reject) => {
      const noAnswer = () => reject(new BackendError('no answer', 'unavailable', 'unknown'));
      const timer = this.runtime.timer(COMMAND_TIMEOUT, noAnswer);
      const answer = (settle: () => void) => {
        this.travel(unanswered, () => {
          timer.cancel();
          settle();
        });
      };
      this.travel(lost, () => {
        command().then(
          (reply) => answer(() => resolve(reply)),
          (error) => answer(() => reject(error)),
        );
      });
    });
  }

  private readonly subscribe: LockBackend['subscribe'] = (key, type, clientId, listener) => {
    let open = true;
    const subscription = this.node.subscribe(key, type, clientId, (wake: Wake) => {
      this.travel(this.conditions.unheard, () => open && listener(wake));
    });
    return {
      ready: subscription.ready,
      close: () => {
        open = false;
        subscription.close();
      },
    };
  };

  private travel(lost: number, arrive: () => void): void {
    const { runtime, conditions } = this;
    if (this.cutOff || runtime.random() < lost) return;
    runtime.timer(conditions.delay * runtime.random() ** 2, () => !this.cutOff && arrive());
  }
}
