/**
 * Delivers items in order, each after the delay that was set when it arrived. An item is never delivered before the
 * previous one.
 */
export class DelayLine<T> {
  readonly #queue: { readonly due: number; readonly item: T }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly deliver: (item: T) => void) {}

  push(item: T, delay: number): void {
    if (delay === 0 && this.#queue.length === 0) {
      this.deliver(item);
      return;
    }
    this.#queue.push({ due: performance.now() + delay, item });
    this.#timer ??= setTimeout(() => this.#pump(), delay);
  }

  /** Whether all items were delivered. */
  get isEmpty(): boolean {
    return this.#queue.length === 0;
  }

  /** Delivers all delayed items at once. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { item } of this.#queue.splice(0)) this.deliver(item);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#queue.length = 0;
  }

  #pump(): void {
    this.#timer = undefined;
    for (let next = this.#queue[0]; next; next = this.#queue[0]) {
      const rest = next.due - performance.now();
      if (rest > 0) {
        this.#timer = setTimeout(() => this.#pump(), rest);
        return;
      }
      this.#queue.shift();
      this.deliver(next.item);
    }
  }
}
