import { type AcquireReply, BackendError, type Busy, type ReleaseReply } from '../../backends/lock-backend.js';
import type { HeldLock, LockWaiter, ReleaseOutcome } from '../lease/held-lock.js';
import { Contention } from '../waiting/contention.js';
import type { WaiterRequest } from '../waiting/waiter-request.js';
import { AcquisitionQueue } from './acquisition-queue.js';

/** A queue whose head contends with other processes: they take turns. Readers do not, since they are served side by side. */
export abstract class ContendedQueue extends AcquisitionQueue {
  /** `undefined` until another process was met: most locks are held by one caller that nobody disturbs. */
  protected contended: Contention | undefined;
  /** The backend waits by itself for the holder that was met. */
  protected waitsInBackend = false;

  /** Gives a waiter another owner whose present one the backend has released; before that owner is sent. */
  abstract renewSpentOwner(waiter: LockWaiter): void;

  override release(held: HeldLock): Promise<ReleaseOutcome> {
    if (held.type !== 'read') this.contended?.releasing();
    return super.release(held);
  }

  protected override released(held: HeldLock, reply: ReleaseReply | undefined): void {
    if (held.type === 'read') return;
    if (!reply?.published) this.contended?.releasedSilently();
    if (reply?.released) this.yieldTo(reply.listeners);
  }

  protected get contention(): Contention {
    const { backend, runtime, clientId } = this.context;
    this.contended ??= new Contention(
      (listener) => backend.subscribe(this.key, this.type, clientId, listener),
      runtime,
      () => this.resume(),
      (holder) => (this.type === 'read' ? undefined : backend.takeTicket?.(this.key, holder)),
    );
    return this.contended;
  }

  protected override send(request: WaiterRequest, waiter: LockWaiter): Promise<AcquireReply> {
    const { blocking } = this.context.backend;
    if (blocking === undefined || waiter.triesOnce) return super.send(request, waiter);
    return blocking.acquire(request, (reason) => this.blocked(reason));
  }

  /** Nobody waits any more for what the backend waits for. */
  protected stopBlocking(request: WaiterRequest | undefined): void {
    if (request !== undefined) this.context.backend.blocking?.stop(request);
  }

  /** Refuses the callers that try once, and have seen one attempt. */
  protected abstract refuseTriers(errorOf: (trier: LockWaiter) => Error): void;

  private yieldTo(listeners: number): void {
    const others = listeners > 0 ? this.contention : this.contended;
    others?.yieldTo(listeners, this.waiting.length > 0);
  }

  private get mayAnyLeave(): boolean {
    for (const { mayLeave } of this.waiting) if (mayLeave) return true;
    return false;
  }

  /** The backend waits for the lock by itself, or for something else: nobody who must not wait for that stays. */
  private blocked(reason: Busy | BackendError): void {
    if (reason instanceof BackendError) {
      this.failure = reason;
      for (const waiter of this.waiting)
        if (waiter.triesOnce || waiter.scoped) this.dismiss(waiter, this.unavailable(waiter));
      return;
    }
    this.failure = undefined;
    this.seen = { busy: reason, at: this.context.clock.now() };
    this.waitsInBackend = true;
    if (reason.holder !== undefined && this.mayAnyLeave) this.context.holders.expect(reason.holder);
    this.refuseTriers((trier) => this.busy(trier));
    this.warnOfLongWaits();
  }
}
