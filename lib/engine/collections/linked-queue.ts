/** An element of a {@link LinkedQueue}; it is in at most one queue. */
export interface Linked<Element> {
  previous: Element | undefined;
  next: Element | undefined;
}

/** An iteration over a queue that has not ended yet. */
interface Walk<Element> {
  next: Element | undefined;
}

const NO_WALKS: readonly never[] = [];

/**
 * Elements in the order of their arrival. Each can be removed in constant time. The queue does not keep a removed
 * element in memory.
 */
export class LinkedQueue<Element extends Linked<Element>> {
  first: Element | undefined = undefined;
  last: Element | undefined = undefined;
  length = 0;
  /** Iterations under way. Removing an element must not end them. */
  private walks: readonly Walk<Element>[] = NO_WALKS;

  push(element: Element): void {
    element.previous = this.last;
    if (this.last === undefined) this.first = element;
    else this.last.next = element;
    this.last = element;
    this.length++;
  }

  /** @returns false when the element is not in this queue */
  remove(element: Element): boolean {
    if (element.previous === undefined && this.first !== element) return false;
    if (this.walks.length > 0) for (const walk of this.walks) if (walk.next === element) walk.next = element.next;
    if (element.previous === undefined) this.first = element.next;
    else element.previous.next = element.next;
    if (element.next === undefined) this.last = element.previous;
    else element.next.previous = element.previous;
    element.previous = element.next = undefined;
    this.length--;
    return true;
  }

  /** Any element may be removed during the iteration. */
  *[Symbol.iterator](): Generator<Element> {
    const walk: Walk<Element> = { next: this.first };
    this.walks = [...this.walks, walk];
    try {
      for (let element = walk.next; element !== undefined; element = walk.next) {
        walk.next = element.next;
        yield element;
      }
    } finally {
      this.walks = this.walks.length === 1 ? NO_WALKS : this.walks.filter((other) => other !== walk);
    }
  }
}
