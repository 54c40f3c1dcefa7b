import { LockLostError } from '../errors.js';
import { leaseController } from '../lease/lease-controller.js';
import type { Synchronizer } from './synchronizer.js';

/**
 * A permit while a body runs that needs it: see `PermitExpirableSemaphore.withPermit`.
 *
 * @publicApi
 */
export interface PermitLease {
  /** The permit's id. */
  readonly id: string;
  /** Aborts when the permit is lost. Its reason is the LockLostError. */
  readonly signal: AbortSignal;
  /** Whether the permit is still held, as far as this process knows. */
  readonly held: boolean;
  /** @throws LockLostError when the permit was lost */
  assertHeld(): void;
}

/** See {@link PermitLease}. */
export class HeldPermitLease implements PermitLease {
  loss: LockLostError | undefined;
  private isReleased = false;
  private readonly controller = leaseController();

  constructor(
    readonly id: string,
    private readonly semaphore: Synchronizer,
  ) {}

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get held(): boolean {
    return this.loss === undefined && !this.isReleased;
  }

  assertHeld(): void {
    if (this.loss !== undefined) throw this.loss;
  }

  lose(loss: LockLostError): void {
    this.loss ??= loss;
    this.controller.abort(this.loss);
  }

  /** @param wasHeld whether the backend still had the permit */
  released(wasHeld: boolean): void {
    this.isReleased = true;
    if (wasHeld || this.loss !== undefined) return;
    const { what, name } = this.semaphore;
    this.loss = new LockLostError(
      `A permit of ${what} was lost: it no longer existed at its release, so others may have had it before`,
      name,
    );
  }
}
