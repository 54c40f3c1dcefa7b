/** An element of a {@link LinkedQueue}, in one at the most. */
export interface Linked<Element> {
  previous: Element | undefined;
  next: Element | undefined;
}

/** Elements in the order of their arrival. Each can leave from any place at once, and what has left is not kept alive. */
export class LinkedQueue<Element extends Linked<Element>> {
  first: Element | undefined = undefined;
  last: Element | undefined = undefined;
  length = 0;

  push(element: Element): void {
    element.previous = this.last;
    if (this.last === undefined) this.first = element;
    else this.last.next = element;
    this.last = element;
    this.length++;
  }

  /** @returns false when it is not in here */
  remove(element: Element): boolean {
    if (element.previous === undefined && this.first !== element) return false;
    if (element.previous === undefined) this.first = element.next;
    else element.previous.next = element.next;
    if (element.next === undefined) this.last = element.previous;
    else element.next.previous = element.previous;
    element.previous = element.next = undefined;
    this.length--;
    return true;
  }

  *[Symbol.iterator](): Generator<Element> {
    for (let element = this.first; element !== undefined; ) {
      const next: Element | undefined = element.next;
      yield element;
      element = next;
    }
  }
}
