import { listOf } from '../collections/list-of.js';
import { LockBusyError } from '../errors.js';
import type { HeldLock, LockWaiter } from '../lease/held-lock.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { LockAcquirer } from '../lock-acquirer.js';
import type { Milliseconds } from '../terms/duration.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { Waiter } from '../waiting/waiter.js';
import { confirmLease } from './confirm-lease.js';
import { Downgrade } from './downgrade.js';
import { isStillShared, type Reentry } from './find-reentry.js';
import { lockScopes } from './lock-scope.js';
import type { ShareGate } from './share-gate.js';
import { closeGatesAbove, shareMode } from './share-mode.js';

/**
 * Gives a child of the share that holds the lock a share of its own: same owner, same token, same lease, no round trip. Siblings that asked
 * for the same lock earlier go first.
 *
 * @throws LockUpgradeError when a reader asks for the write lock
 */
export function reenter(
  engine: LockAcquirer,
  reentry: Reentry,
  name: string,
  terms: AcquisitionTerms,
): Promise<LockLease> {
  const { scope, held } = reentry;
  const mode = shareMode(held, terms.type);
  const gate = scope.lease.gates.gate(held.key);
  const child = new Child(engine, reentry, gate, name);
  if (gate.open(mode)) {
    gate.enter(mode);
    return child.enter(terms);
  }
  const siblingError = () => busySiblingError(engine, held, terms);
  if (terms.waitTime === 0) return Promise.reject(siblingError());
  return new Promise((resolve, reject) => {
    const granted = () => resolve(child.enter(withWaitTime(terms, waiter.remainingWait)));
    const { runtime } = engine.context;
    const waiter: LockWaiter = new Waiter(name, () => held.owner, terms, runtime, granted, reject);
    gate.wait(waiter, mode, () => waiter.grant(held), siblingError);
  });
}

/** A share to be, which has entered its gate, or is going to. */
class Child {
  /** The flow of the caller: its turn comes in the flow of a sibling. */
  private readonly caller = lockScopes.getStore();
  private inside = true;

  constructor(
    private readonly engine: LockAcquirer,
    private readonly reentry: Reentry,
    private readonly gate: ShareGate,
    private readonly name: string,
  ) {}

  /** The gate is entered: what the child gets depends on whether the lock is still held. */
  enter(terms: AcquisitionTerms): Promise<LockLease> {
    return lockScopes.run(this.caller, async () => {
      try {
        return await this.take(terms);
      } catch (error) {
        this.leave();
        throw error;
      }
    });
  }

  private async take(terms: AcquisitionTerms): Promise<LockLease> {
    const { engine, reentry, gate } = this;
    const { context } = engine;
    const { held } = reentry;
    if (isStillShared(context, reentry) && context.watchdog.judge(held) === 'unsure') {
      const since = context.runtime.monotonic();
      await confirmLease(context, held, terms);
      terms = withWaitTime(terms, terms.waitTime - (context.runtime.monotonic() - since));
    }
    if (!isStillShared(context, reentry)) return this.acquireAnew(terms);
    if (held.type === 'write' && terms.type === 'read') return this.downgrade(terms);
    return engine.createLease(listOf(held), terms, listOf(gate, ...closeGatesAbove(reentry, terms.type)));
  }

  /** The scope has ended, or the lock was lost: the child is on its own now. */
  private acquireAnew(terms: AcquisitionTerms): Promise<LockLease> {
    const { type, waitTime, signal, onLost, fixed, group } = terms;
    const leaseTime = fixed ? terms.leaseTime : undefined;
    const lease = lockScopes.run(this.caller, () =>
      this.engine.acquire(this.name, { type, waitTime, leaseTime, signal, onLost, group }),
    );
    this.leave(); // the next sibling is admitted after this one has asked: they keep their order
    return lease;
  }

  private downgrade(terms: AcquisitionTerms): Promise<LockLease> {
    const { engine, gate, name } = this;
    const { held } = this.reentry;
    engine.admit('acquire()', name);
    return new Promise((resolve, reject) => {
      const granted = (read: HeldLock | undefined) => {
        if (read !== undefined) resolve(engine.createLease(listOf(read), terms, listOf(gate)));
        else resolve(this.acquireAnew(withWaitTime(terms, waiter.remainingWait)));
      };
      const { runtime } = engine.context;
      const waiter = new Waiter<HeldLock | undefined>(name, () => held.owner, terms, runtime, granted, reject);
      held.downgrade ??= new Downgrade(engine, held);
      held.downgrade.enqueue(waiter);
    });
  }

  private leave(): void {
    if (this.inside) this.gate.leave();
    this.inside = false;
  }
}

function withWaitTime(terms: AcquisitionTerms, waitTime: number): AcquisitionTerms {
  return { ...terms, waitTime: Math.max(0, waitTime) as Milliseconds };
}

function busySiblingError({ context }: LockAcquirer, held: HeldLock, { waitTime }: AcquisitionTerms): LockBusyError {
  const remaining = Math.max(0, Math.round(held.validFor - context.clock.age(held.confirmed)));
  const waited = waitTime > 0 ? `, for over ${waitTime} ms` : '';
  return new LockBusyError(
    `The lock '${held.name}' is busy: another branch of the code that holds it is inside${waited}`,
    held.name,
    remaining,
    held.owner,
    false,
    context.holders.own(held),
  );
}
