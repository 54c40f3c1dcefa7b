import { make } from './dom.js';

const shown = new Set();
/** How far the server's clock is ahead of this one, in milliseconds. */
let ahead = 0;

export function setServerTime(now) {
  ahead = now - Date.now();
}

/** The time by the server's clock. */
export function serverTime() {
  return Date.now() + ahead;
}

/** A time since or until a moment, which is updated every second: `<live-time>`. */
class LiveTime extends HTMLElement {
  at = null;
  isEnd = false;
  prefix = '';
  missing = '';

  connectedCallback() {
    shown.add(this);
    this.tick();
  }

  disconnectedCallback() {
    shown.delete(this);
  }

  tick() {
    const { at, isEnd, prefix, missing } = this;
    const now = serverTime();
    const text = at === null ? missing : prefix + inWords(isEnd ? at - now : now - at);
    if (this.textContent !== text) this.textContent = text;
  }
}

customElements.define('live-time', LiveTime);
setInterval(() => {
  if (!document.hidden) for (const time of shown) time.tick();
}, 1_000);
document.addEventListener('visibilitychange', () => {
  for (const time of shown) time.tick();
});

/** How long ago `at` is. */
export function ago(at, { prefix = '', missing = '–' } = {}) {
  return Object.assign(make('live-time'), { at, prefix, missing });
}

/** How long it is until `at`. */
export function until(at, { missing = 'no end' } = {}) {
  return Object.assign(make('live-time'), { at, isEnd: true, missing });
}

function inWords(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1_000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} days`;
}
