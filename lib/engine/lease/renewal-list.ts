/** An element of a {@link RenewalList}; it is in one list at most. */
export interface Renewable<Element extends Renewable<Element>> {
  list: RenewalList<Element> | undefined;
  earlier: Element | undefined;
  later: Element | undefined;
  /** When its lease ends unless it is confirmed again, on the monotonic clock. */
  readonly leaseEnd: number;
}

/** Held locks in the order in which their leases end unless they are confirmed again. */
export class RenewalList<Element extends Renewable<Element>> {
  first: Element | undefined;
  private last: Element | undefined;

  push(element: Element): void {
    // Answers arrive roughly in the order of the requests, and most leases have the same length: the right position is at the end, or a
    // few steps before it.
    const { leaseEnd } = element;
    let earlier = this.last;
    while (earlier !== undefined && earlier.leaseEnd > leaseEnd) earlier = earlier.earlier;
    const later = earlier === undefined ? this.first : earlier.later;
    element.list = this;
    element.earlier = earlier;
    element.later = later;
    if (earlier === undefined) this.first = element;
    else earlier.later = element;
    if (later === undefined) this.last = element;
    else later.earlier = element;
  }

  remove(element: Element): void {
    if (element.list !== this) return;
    if (element.earlier === undefined) this.first = element.later;
    else element.earlier.later = element.later;
    if (element.later === undefined) this.last = element.earlier;
    else element.later.earlier = element.earlier;
    element.earlier = element.later = element.list = undefined;
  }
}
