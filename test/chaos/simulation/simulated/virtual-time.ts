interface Event {
  due: number;
  /** Of two that are due at one time, the one that was started first comes first. */
  order: number;
  callback: () => void;
}

/**
 * Time as nobody in particular sees it: events, each at its time. Between two of them all promises settle, as between two turns
 * of an event loop, so that one order of events is one run.
 */
export class VirtualTime {
  now = 0;
  /** Events so far. */
  count = 0;
  private order = 0;
  /** A binary heap, the next event first. */
  private readonly heap: Event[] = [];

  /** Calls back in so many milliseconds. */
  after(delay: number, callback: () => void): void {
    this.at(this.now + delay, callback);
  }

  at(due: number, callback: () => void): void {
    const { heap } = this;
    const event = { due: Math.max(due, this.now), order: ++this.order, callback };
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, heap[parent])) break;
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = event;
  }

  /** Runs event by event until `isOver`, at most to the moment `limit`. Gives whether it was over. */
  run(isOver: () => boolean, limit: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const step = () => {
        if (isOver()) return resolve(true);
        if (this.heap.length === 0 || this.heap[0].due > limit) return resolve(false);
        const { due, callback } = this.next();
        this.now = due;
        this.count++;
        try {
          callback();
        } catch (error) {
          return reject(error);
        }
        setImmediate(step);
      };
      setImmediate(step);
    });
  }

  private next(): Event {
    const { heap } = this;
    const first = heap[0];
    const last = heap.pop() as Event;
    if (heap.length === 0) return first;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child++;
      if (!isBefore(heap[child], last)) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.due < other.due || (one.due === other.due && one.order < other.order);
}
