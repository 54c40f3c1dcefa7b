import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';

/** Some 640 MB in objects of 40 bytes. */
const SIZE = 16_000_000;
const STEP = 1_000_000;

/** For `--max-old-space-size`: with less garbage than that, a process has to collect. In megabytes. */
export const SMALL_HEAP = 800;

/** A heap of live objects. They are a chain whose links are scattered in memory, so one thread has to follow it slowly. */
export class LiveHeap {
  /** The collections that were longer than a tenth of a second, in milliseconds. */
  collections = [];
  #first = prepend(undefined);
  #garbage = [];
  #observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) if (duration > 100) this.collections.push(duration);
  });

  static async fill() {
    const heap = new LiveHeap();
    for (let size = STEP; size < SIZE; size += STEP) {
      heap.#first = prepend(heap.#first);
      await setImmediate();
    }
    heap.#observer.observe({ entryTypes: ['gc'] });
    return heap;
  }

  /**
   * Makes garbage, and lets the event loop run after each megabyte of it. Only collections block the event loop.
   *
   * @param {number} time until one of them has taken this long, in milliseconds, and not for longer than a minute
   * @returns {Promise<number>} the longest collection, in milliseconds
   */
  async churn(time) {
    this.collections = [];
    const end = performance.now() + 60_000;
    for (let n = 0; Math.max(0, ...this.collections) <= time && performance.now() < end; n++) {
      this.#garbage[n % 10] = new Array(2 ** 17).fill(this.#first);
      await setImmediate();
    }
    return Math.max(0, ...this.collections);
  }
}

function prepend(first) {
  const nodes = Array.from({ length: STEP }, (_, payload) => ({ next: undefined, payload }));
  for (let i = STEP - 1; i > 0; i--) {
    const other = Math.floor(Math.random() * i);
    [nodes[i], nodes[other]] = [nodes[other], nodes[i]];
  }
  for (const [i, node] of nodes.entries()) node.next = nodes[i + 1] ?? first;
  return nodes[0];
}
