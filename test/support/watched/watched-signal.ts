/** An AbortController whose signal counts its listeners. */
export class WatchedAbort extends AbortController {
  listeners = 0;

  constructor() {
    super();
    const { signal } = this;
    const known = new Set<unknown>();
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = ((type: string, listener: never, options: never) => {
      known.add(listener);
      this.listeners = known.size;
      add(type, listener, options);
    }) as typeof signal.addEventListener;
    signal.removeEventListener = ((type: string, listener: never, options: never) => {
      known.delete(listener);
      this.listeners = known.size;
      remove(type, listener, options);
    }) as typeof signal.removeEventListener;
  }
}
