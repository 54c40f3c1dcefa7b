import type { ReleaseReply } from '../../backends/lock-backend.js';
import type { HeldLock, ReleaseOutcome } from '../lease/held-lock.js';
import { Contention } from '../waiting/contention.js';
import { AcquisitionQueue } from './acquisition-queue.js';

/** A queue whose head contends with other processes: they take turns. Readers do not, since they are served side by side. */
export abstract class ContendedQueue extends AcquisitionQueue {
  /** `undefined` until another process was met: most locks are held by one caller that nobody disturbs. */
  protected contended: Contention | undefined;

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

  private yieldTo(listeners: number): void {
    const others = listeners > 0 ? this.contention : this.contended;
    others?.yieldTo(listeners, this.waiting.length > 0);
  }
}
