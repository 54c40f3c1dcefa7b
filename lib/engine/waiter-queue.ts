import type { Waiter } from './waiter.js';

/** Waiters in the order of their arrival. Each can leave from any place at once. */
export class WaiterQueue {
  first: Waiter | undefined;
  private last: Waiter | undefined;
  length = 0;

  push(waiter: Waiter): void {
    waiter.previous = this.last;
    if (this.last === undefined) this.first = waiter;
    else this.last.next = waiter;
    this.last = waiter;
    this.length++;
  }

  /** @returns false when it is not in here */
  remove(waiter: Waiter): boolean {
    if (waiter.previous === undefined && this.first !== waiter) return false;
    if (waiter.previous === undefined) this.first = waiter.next;
    else waiter.previous.next = waiter.next;
    if (waiter.next === undefined) this.last = waiter.previous;
    else waiter.next.previous = waiter.previous;
    waiter.previous = waiter.next = undefined;
    this.length--;
    return true;
  }

  *[Symbol.iterator](): Generator<Waiter> {
    for (let waiter = this.first; waiter !== undefined; ) {
      const next: Waiter | undefined = waiter.next;
      yield waiter;
      waiter = next;
    }
  }
}
