import { foreign, make, SHORT } from './dom.js';
import { ago, serverTime, until } from './live-time.js';
import { toHash } from './route.js';

/** Waiters are highlighted when the first of them has waited this long, in milliseconds. */
const LONG_WAIT = 10_000;

const COLUMNS = [
  ['name', 'Lock'],
  ['type', 'Type'],
  ['holder', 'Held by'],
  ['method', 'In'],
  ['since', 'For'],
  ['lease', 'Lease left'],
  ['token', 'Token'],
  ['waiting', 'Waiting'],
  ['wait', 'Longest wait'],
];

/** A holder up to this length stays in one line if the table is 1,200 pixels wide, in characters. */
const SHORT_HOLDER = 46;

/** The first click on these columns sorts the largest values first. */
const DESCENDING_FIRST = new Set(['since', 'token', 'waiting', 'wait']);

/** A page of the held locks: `<lock-table>`. It emits `sort` for another order, and `show` for a lock. */
class LockTable extends HTMLElement {
  #rows = new Map();
  #body = make('tbody', { click: (event) => this.#clicked(event) });
  #headers = new Map();
  #sorted = '';

  connectedCallback() {
    if (this.firstChild) return;
    const headers = COLUMNS.map(([key, title]) => {
      const button = make('button', { type: 'button', click: () => this.#sort(key) }, title);
      const header = make('th', { scope: 'col', class: key }, button);
      this.#headers.set(key, header);
      return header;
    });
    const table = make(
      'table',
      {},
      make('caption', { class: 'hidden' }, 'Locks that are held'),
      make('thead', {}, make('tr', {}, ...headers)),
      this.#body,
    );
    this.append(table);
  }

  setOrder(sort, order) {
    this.#sorted = sort;
    for (const [key, header] of this.#headers) {
      if (key === sort) header.setAttribute('aria-sort', order);
      else header.removeAttribute('aria-sort');
    }
  }

  /** @param locks in the order in which they are shown */
  setLocks(locks) {
    const rows = new Map();
    for (const lock of locks) {
      const known = this.#rows.get(lock.name);
      rows.set(lock.name, known?.lock === lock ? known : this.#fill(lock, known?.row ?? make('tr')));
    }
    for (const [name, { row }] of this.#rows) if (!rows.has(name)) row.remove();
    this.#rows = rows;
    // For most locks, no token is known.
    const hasTokens = this.#sorted === 'token' || locks.some(({ token }) => token !== null);
    this.classList.toggle('without-tokens', !hasTokens);
    let position = this.#body.firstElementChild;
    for (const { row } of rows.values()) {
      if (row === position) position = position.nextElementSibling;
      else this.#body.insertBefore(row, position);
    }
  }

  markLongWaits() {
    const since = serverTime() - LONG_WAIT;
    for (const { row, lock } of this.#rows.values())
      row.classList.toggle('late', lock.waitsSince !== null && lock.waitsSince < since);
  }

  #fill(lock, row) {
    const [first] = lock.owners;
    const cells = {
      type: [lock.type],
      holder: [holderOf(lock)],
      method: [first?.method ? foreign(first.method) : '–'],
      since: [first ? ago(oldest(lock).since, { prefix: oldest(lock).atLeast ? '≥ ' : '' }) : '–'],
      lease: [until(lock.leaseEnds)],
      token: [lock.token === null ? '–' : String(lock.token)],
      waiting: [String(lock.waiting)],
      wait: [lock.waitsSince === null ? '–' : ago(lock.waitsSince)],
    };
    if (row.firstChild === null) {
      // The element is reused, because it may have the focus.
      const name = make('a', { class: 'name', href: toHash({ lock: lock.name }) }, foreign(lock.name, SHORT));
      const size = lock.name.length > SHORT ? '' : 'short';
      row.append(make('th', { scope: 'row', 'data-title': 'Lock', class: size }, name));
      for (const [key, title] of COLUMNS.slice(1)) row.append(make('td', { class: key, 'data-title': title }));
    }
    COLUMNS.slice(1).forEach(([key], n) => {
      row.children[n + 1].replaceChildren(...cells[key]);
      const { classList, textContent } = row.children[n + 1];
      classList.toggle('none', cells[key][0] === '–');
      if (key === 'holder') classList.toggle('short', textContent.length <= SHORT_HOLDER);
    });
    row.classList.toggle('contended', lock.waiting > 0);
    return { row, lock };
  }

  /** A click anywhere in a row shows its lock, unless a modifier key is pressed or text is selected. */
  #clicked(event) {
    const isElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    const isLink = event.target.closest('a') !== null;
    if (isElsewhere || (!isLink && !getSelection().isCollapsed)) return;
    event.preventDefault();
    const clicked = event.target.closest('tr');
    for (const [name, { row }] of this.#rows)
      if (row === clicked) this.dispatchEvent(new CustomEvent('show', { detail: name }));
  }

  #sort(key) {
    const present = this.#headers.get(key).getAttribute('aria-sort');
    const first = DESCENDING_FIRST.has(key) ? 'descending' : 'ascending';
    const other = first === 'ascending' ? 'descending' : 'ascending';
    const order = present === first ? other : first;
    this.dispatchEvent(new CustomEvent('sort', { detail: { sort: key, order } }));
  }
}

customElements.define('lock-table', LockTable);

/** `shop-2 on web-7, pid 4242` */
export function placeOf({ application, host, pid, redisson, detached }) {
  if (redisson) return 'a Redisson client';
  const by = detached ? 'detached by ' : '';
  if (!application) return `${by}a client without a record`;
  return make(
    'span',
    { class: 'place' },
    by,
    foreign(application, SHORT),
    ' on ',
    foreign(host, SHORT),
    `, pid ${pid}`,
  );
}

function holderOf({ owners, ownerCount }) {
  if (ownerCount === 0) return '–';
  return make('span', {}, placeOf(owners[0]), ownerCount > 1 ? ` and ${ownerCount - 1} more` : '');
}

function oldest({ owners }) {
  return owners.reduce((one, other) => (other.since < one.since ? other : one));
}
