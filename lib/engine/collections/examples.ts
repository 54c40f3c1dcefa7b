/**
 * The latest instances of classes of which an idle service would have none. Full garbage collections that find no instance
 * of a class make V8 forget its shape, and with it all optimized code that uses the class. See
 * docs/internals/decisions/classes-on-the-hot-path.md.
 *
 * They must not keep anything of a caller in memory, such as the listeners of a signal.
 */
export class Examples {
  waiter: object | undefined = undefined;
  /** Refers to a held lock and its queue. */
  lease: object | undefined = undefined;

  /** @param waiter a waiter without a signal, and its lease */
  served(waiter: object, lease: object): void {
    this.waiter = waiter;
    this.lease = lease;
  }

  /** Called when a lease ends that may refer to something of its caller. It may be the latest. */
  forget(): void {
    this.waiter = this.lease = undefined;
  }
}
