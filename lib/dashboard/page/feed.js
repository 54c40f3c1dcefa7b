const API = new URL('../api/', import.meta.url);
/** The stream sends a message every three seconds. If nothing arrives for this long, the page closes it. */
const SILENCE = 8_000;
/**
 * If the stream's first message does not arrive within this time, the page polls until it does, because a proxy may
 * buffer the stream.
 */
const PATIENCE = 2_500;
/** A closed stream is tried again after this time. */
const RETRY_STREAM = 60_000;
/**
 * A stream that has lasted this long has not failed when it ends, because the application ends each one after five
 * minutes.
 */
const LASTING = 10_000;
const POLL = 2_000;
/** A tab in the background frees its connection, because a browser has only six for all tabs of a site. */
const POLL_IN_BACKGROUND = 15_000;

const SIGN_IN = 'You may have to sign in again: reload the page.';

/**
 * Receives the data for a query, and then the changes, by server-sent events. If these do not arrive, it polls every
 * two seconds.
 *
 * It calls `onUpdate` with the changes, and `onTrouble` with a text when no data arrives (`undefined`: all is well
 * again).
 */
export class Feed {
  #query = '';
  #source;
  #timers = new Set();
  #run = 0;
  #streamFrom = 0;
  #parts = new Map();

  constructor(onUpdate, onTrouble) {
    this.onUpdate = onUpdate;
    this.onTrouble = onTrouble;
    document.addEventListener('visibilitychange', () => this.#start());
  }

  /** How the data arrives: `stream` or `polling`. */
  mode = 'stream';

  open(query) {
    this.#query = new URLSearchParams(query).toString();
    // These parts depend on the query.
    this.#parts.delete('locks');
    this.#parts.delete('lock');
    this.#start();
  }

  #start() {
    this.#source?.close();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    const run = ++this.#run;
    const wait = this.#streamFrom - performance.now();
    if (!document.hidden && wait <= 0) return this.#stream(run);
    if (!document.hidden) this.#after(wait, () => this.#start());
    void this.#poll(run);
  }

  #stream(run) {
    const source = new EventSource(new URL(`stream?${this.#query}`, API));
    const opened = performance.now();
    let lasted = 0;
    let silence = this.#after(SILENCE, () => this.#giveUp());
    const patience = this.#after(PATIENCE, () => this.#poll(run));
    this.#source = source;
    source.addEventListener('message', ({ data }) => {
      if (run !== this.#run) return;
      this.mode = 'stream';
      lasted = performance.now() - opened;
      this.#cancel(patience);
      this.#cancel(silence);
      silence = this.#after(SILENCE, () => this.#giveUp());
      this.#arrived(JSON.parse(data));
    });
    source.addEventListener('error', () => {
      if (run !== this.#run) return;
      if (lasted > LASTING) this.#start();
      else this.#giveUp();
    });
  }

  #giveUp() {
    this.#streamFrom = performance.now() + RETRY_STREAM;
    this.#start();
  }

  /** Polls until a message arrives on the stream. */
  async #poll(run) {
    if (run !== this.#run) return;
    this.mode = 'polling';
    const { answer, refusal } = await ask(`board?${this.#query}`, { signal: AbortSignal.timeout(15_000) });
    if (run !== this.#run || this.mode === 'stream') return;
    if (answer) this.#arrived(answer);
    else this.onTrouble(refusal ?? 'The application does not answer. The page tries again every two seconds.');
    this.#after(document.hidden ? POLL_IN_BACKGROUND : POLL, () => {
      if (this.mode !== 'stream') void this.#poll(run);
    });
  }

  /** Unchanged parts are left out, so that they are not rendered or read aloud again. */
  #arrived({ now, seen, ...parts }) {
    this.onTrouble(undefined);
    const changed = Object.entries(parts).filter(([part, value]) => {
      const text = JSON.stringify(value);
      if (this.#parts.get(part) === text) return false;
      this.#parts.set(part, text);
      return true;
    });
    this.onUpdate({ now, seen, ...Object.fromEntries(changed) });
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

/** @returns undefined if it was released, otherwise why not */
export async function releaseLock(name, shown, reason) {
  // A path cannot contain every name, such as `..` or a long one. Such names are sent in the body.
  const fits = /^[\w.:~@-]{3,90}$/.test(name);
  const path = fits ? `locks/${encodeURIComponent(name)}/release` : 'release';
  const { answer, refusal } = await ask(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-redis-lock-dashboard': 'release' },
    body: JSON.stringify({ name, ...shown, reason }),
  });
  if (answer?.released === true) return undefined;
  return refusal ?? 'The application does not answer. Check whether the lock is still held before you try again.';
}

/** @returns `answer`, or `refusal` with the reason, or neither when the application does not answer */
async function ask(path, options) {
  try {
    // A redirect leads to a sign-in page, which is not an answer.
    const response = await fetch(new URL(path, API), { ...options, redirect: 'manual' });
    if (response.type === 'opaqueredirect') return { refusal: SIGN_IN };
    const body = await response.json().catch(() => undefined);
    if (response.ok)
      return body ? { answer: body } : { refusal: `The application sent an unexpected answer. ${SIGN_IN}` };
    const { message } = body ?? {};
    if (response.status !== 401 && response.status !== 403)
      return { refusal: message ?? `The application answered ${response.status}.` };
    return { refusal: `You are not allowed to do this${message ? ` (${message})` : ''}. ${SIGN_IN}` };
  } catch {
    return {};
  }
}
