import {
  type AcquireRequest,
  BackendError,
  type LockBackend,
  type OwnerRef,
  type TransferRequest,
  type Wake,
} from '../../../lib/backends/lock-backend.js';
import type { Runtime } from '../../../lib/backends/runtime.js';
import { SpentOwners } from '../../support/watched/spent-owners.js';

/** How a network treats commands and messages. Probabilities are between 0 and 1. */
export interface NetworkConditions {
  /** The longest delay in each direction, in ms. */
  delay: number;
  /** The probability that a command never arrives. */
  lost: number;
  /** The probability that a command is executed, and its answer never arrives. */
  unanswered: number;
  /** The probability that a message to a subscriber never arrives. */
  unheard: number;
}

const COMMAND_TIMEOUT = 1_000;

const UNDISTURBED: readonly (string | symbol)[] = ['canAcquireTogether', 'close', 'listenToClient'];

/**
 * A backend behind a network that delays and loses commands, by the random numbers of a runtime. While it is cut off,
 * nothing gets through.
 */
export class UnreliableNode {
  cutOff = false;
  readonly backend: LockBackend;
  /** The owners for which an acquisition was sent after their release. */
  readonly reused: string[] = [];
  private readonly owners = new SpentOwners((_key, owner) => this.reused.push(owner));

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
        return (...args: unknown[]) => {
          this.note(name, args[0]);
          return this.run(() => member.apply(target, args));
        };
      },
    });
  }

  private note(command: string | symbol, request: unknown): void {
    if (command === 'acquire') this.owners.acquiring(request as AcquireRequest);
    if (command === 'acquireAll') for (const each of request as AcquireRequest[]) this.owners.acquiring(each);
    if (command === 'release' || command === 'removeWaiter') this.owners.givingBack(request as OwnerRef);
    if (command !== 'transfer') return;
    const { key, from, to } = request as TransferRequest;
    this.owners.acquiring({ key, owner: to });
    this.owners.givingBack({ key, owner: from });
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
