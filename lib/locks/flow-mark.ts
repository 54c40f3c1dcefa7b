import { LockScope, lockScopes } from '../engine/lock-scope.js';
import type { LockHold } from './lock-hold.js';

const marks = new WeakMap<LockScope, FlowMark>();

/**
 * What a handle's `lock()` leaves on the flow of control that called it: scopes that get their leases when the lock is there, so
 * that the code after the call is inside of it.
 */
export class FlowMark {
  private hold: LockHold | undefined;
  private ended = false;
  private readonly scopes: LockScope[] = [];

  /**
   * Marks the running flow. To be called before anything is awaited: only so the code after the call is marked too.
   *
   * @param identity of the handle's lock
   * @param width how many leases its hold can have
   */
  constructor(
    private readonly identity: string,
    width: number,
  ) {
    let scope = lockScopes.getStore();
    for (let n = 0; n < width; n++) {
      scope = new LockScope(undefined, scope, this);
      marks.set(scope, this);
      this.scopes.push(scope);
    }
    lockScopes.enterWith(scope);
  }

  /** The latest mark of a lock on the running flow that stands for a hold. */
  static latest(identity: string): FlowMark | undefined {
    for (let scope = lockScopes.getStore(); scope !== undefined; scope = scope.beside ?? scope.parent) {
      const mark = marks.get(scope);
      if (mark?.identity === identity && mark.hold !== undefined && !mark.ended) return mark;
    }
    return undefined;
  }

  fulfil(hold: LockHold): void {
    this.hold = hold;
    const { leases } = hold;
    for (const [n, scope] of this.scopes.entries()) {
      if (n < leases.length) scope.lease = leases[n];
      else scope.end();
    }
  }

  /** There is no hold. */
  end(): void {
    this.ended = true;
    for (const scope of this.scopes) scope.end();
  }

  /** Takes the mark off the flow, and gives what it stood for. */
  takeOff(): LockHold {
    this.end();
    return this.hold as LockHold;
  }
}
