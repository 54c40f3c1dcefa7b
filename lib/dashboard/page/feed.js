const API = new URL('../api/', import.meta.url);
/** The stream tells something every three seconds. Where nothing comes through for so long, it is not used. */
const SILENCE = 8_000;
const POLL = 2_000;
/** While polling, the stream is tried again after so long. */
const RETRY_STREAM = 60_000;

/**
 * Brings what a query shows, and what changes: by server-sent events, and where these do not come through, by asking every two seconds.
 *
 * It calls `onUpdate` with what has changed, and `onTrouble` with a text when nothing can be had (`undefined`: all is well again).
 */
export class Feed {
  #query = '';
  #source;
  #timers = new Set();
  #run = 0;

  constructor(onUpdate, onTrouble) {
    this.onUpdate = onUpdate;
    this.onTrouble = onTrouble;
  }

  /** `stream` or `polling`: how the data comes. */
  mode = 'stream';

  open(query) {
    this.#query = new URLSearchParams(query).toString();
    this.#start(this.mode);
  }

  #start(mode) {
    this.#stop();
    this.mode = mode;
    if (mode === 'stream') this.#stream(++this.#run);
    else {
      const run = ++this.#run;
      this.#after(RETRY_STREAM, () => this.#start('stream'));
      void this.#poll(run);
    }
  }

  #stop() {
    this.#source?.close();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  #stream(run) {
    const source = new EventSource(new URL(`stream?${this.#query}`, API));
    this.#source = source;
    let silence = this.#after(SILENCE, () => this.#start('polling'));
    source.addEventListener('message', ({ data }) => {
      if (run !== this.#run) return;
      this.#cancel(silence);
      silence = this.#after(SILENCE, () => this.#start('polling'));
      this.#arrived(JSON.parse(data));
    });
    // The browser connects again by itself, unless the answer was an error: then polling finds out which.
    source.addEventListener('error', () => {
      if (run === this.#run) this.#start('polling');
    });
  }

  async #poll(run) {
    try {
      const response = await fetch(new URL(`board?${this.#query}`, API), { signal: AbortSignal.timeout(15_000) });
      if (run !== this.#run) return;
      if (response.ok) this.#arrived(await response.json());
      else this.onTrouble(await refusal(response));
    } catch {
      if (run === this.#run) this.onTrouble('The application does not answer. It is asked again every two seconds.');
    }
    if (run === this.#run) this.#after(POLL, () => this.#poll(run));
  }

  #arrived(update) {
    this.onTrouble(undefined);
    this.onUpdate(update);
  }

  #after(time, action) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, time);
    this.#timers.add(timer);
    return timer;
  }

  #cancel(timer) {
    clearTimeout(timer);
    this.#timers.delete(timer);
  }
}

/** @returns undefined when it was released, else why it was not */
export async function releaseLock(name, owners, reason) {
  // A path cannot carry every name: `..`, or a long one. Then the body has it.
  const fits = /^[\w.:~@-]{3,90}$/.test(name);
  const path = fits ? `locks/${encodeURIComponent(name)}/release` : 'release';
  try {
    const response = await fetch(new URL(path, API), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-redis-lock-dashboard': 'release' },
      body: JSON.stringify({ name, owners, reason }),
    });
    return response.ok ? undefined : await refusal(response);
  } catch {
    return 'The application does not answer. Look whether the lock is still held before you try again.';
  }
}

async function refusal(response) {
  if (response.status === 401 || response.status === 403) {
    const { message } = await response.json().catch(() => ({}));
    return `You are not allowed to do this${message ? ` (${message})` : ''}. You may have to sign in again: reload the page.`;
  }
  const { message } = await response.json().catch(() => ({}));
  return message ?? `The application answered ${response.status}.`;
}
