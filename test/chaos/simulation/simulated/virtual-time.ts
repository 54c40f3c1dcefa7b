interface Event {
  due: number;
  /** Of two events that are due at the same time, the one that was scheduled first comes first. */
  order: number;
  callback: () => void;
}

/**
 * The time of the whole simulation, which consists of scheduled events. Between two events, all promises settle, as
 * between two turns of an event loop, so a run is determined by the order of its events.
 */
export class VirtualTime {
  now = 0;
  /** The number of events so far. */
  count = 0;
  private order = 0;
  /** A binary heap, the next event first. */
  private readonly heap: Event[] = [];

  /** Calls back in this many milliseconds. */
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

  /** Runs events until `isOver` returns true, but at most until the time `limit`. Returns whether it was over. */
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
