const listeners = new WeakMap<AbortSignal, AbortListener>();

/** The single listener that all waiters with the same signal share: Node.js warns of a leak when a signal has more than ten listeners. */
export class AbortListener {
  private readonly callbacks = new Set<() => void>();

  static of(signal: AbortSignal): AbortListener {
    return listeners.get(signal) ?? new AbortListener(signal);
  }

  private constructor(private readonly signal: AbortSignal) {
    listeners.set(signal, this);
    signal.addEventListener('abort', this.fire, { once: true });
  }

  add(callback: () => void): void {
    this.callbacks.add(callback);
  }

  /** With the last callback the listener is gone too. */
  remove(callback: () => void): void {
    if (!this.callbacks.delete(callback) || this.callbacks.size > 0) return;
    listeners.delete(this.signal);
    this.signal.removeEventListener('abort', this.fire);
  }

  private readonly fire = (): void => {
    for (const callback of this.callbacks) callback();
  };
}
