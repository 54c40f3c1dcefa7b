import './board-tabs.js';
import './lists.js';
import './lock-dialog.js';
import './lock-table.js';
import { foreign, make, setText } from './dom.js';
import { Feed } from './feed.js';
import { ago, serverTime, setServerTime } from './live-time.js';
import { fromHash, toHash } from './route.js';

/** Typing is over when nothing was typed for this long, in milliseconds. */
const TYPING = 200;

/** The age of the data is shown when the data is older than this, in milliseconds. */
const OLD = 10_000;

/** The whole page: `<lock-board>`. The fragment of its address determines what it shows. */
class LockBoard extends HTMLElement {
  #tab = 'locks';
  #query;
  #known = new Map();
  #readOnly = true;
  #place;
  #trouble;
  #outage = null;
  #seen = 0;
  #summary;
  #announced = '';

  #table = make('lock-table', {
    sort: ({ detail }) => this.#ask({ ...detail, page: 1 }),
    show: ({ detail }) => this.#go({ lock: detail }),
  });
  #dialog = make('lock-dialog', { closed: () => this.#go({ lock: '' }) });
  #synchronizers = make('synchronizer-list');
  #results = make('result-list');
  #clients = make('client-list');
  #events = make('event-list');
  #tabs = make('board-tabs', { choose: ({ detail }) => this.#go({ tab: detail }) });
  #alert = make('div', { role: 'alert', class: 'trouble' });
  #status = make('p', { role: 'status', 'aria-live': 'polite', class: 'hidden' });
  #figures = make('dl', { class: 'figures' });
  #empty = make('p', { class: 'empty' }, 'The locks are being read.');
  #range = make('span');
  #previous = make('button', { type: 'button', click: () => this.#turn(-1) }, 'Previous');
  #next = make('button', { type: 'button', click: () => this.#turn(1) }, 'Next');
  #live = make('span', { class: 'live' });
  #where = make('p', { class: 'where' });
  #search = make('input', {
    type: 'search',
    id: 'search',
    placeholder: 'Name, process, host, method',
    maxlength: '200',
    spellcheck: 'false',
    input: () => this.#typed(),
  });
  #feed = new Feed(
    (update) => this.#update(update),
    (trouble) => this.#setTrouble(trouble),
  );

  connectedCallback() {
    const label = make('label', { for: 'search' }, 'Search locks');
    const find = make('div', { class: 'find', role: 'search' }, label, this.#search);
    const pages = make(
      'nav',
      { class: 'pages', 'aria-label': 'Pages of locks' },
      this.#previous,
      this.#range,
      this.#next,
    );
    const locks = make('div', {}, find, this.#table, this.#empty, pages);
    const note = 'Events of the process that serves this page, since it started. The newest come first.';
    const events = make('div', {}, make('p', { class: 'note' }, note), this.#events);
    this.append(
      make('header', {}, make('h1', {}, 'Locks'), this.#where, this.#live),
      make('main', {}, this.#alert, this.#figures, this.#status, this.#tabs, this.#dialog),
    );
    this.#tabs.setPanels([
      ['locks', 'Locks', locks],
      ['clients', 'Clients', this.#clients],
      ['semaphores', 'Semaphores', this.#synchronizers],
      ['results', 'Results', this.#results],
      ['events', 'Events', events],
    ]);
    this.#table.hidden = true;
    addEventListener('popstate', () => this.#follow());
    this.#follow();
  }

  #typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.#ask({ search: this.#search.value, page: 1 }), TYPING);
  }

  #turn(step) {
    this.#ask({ page: this.#query.page + step });
  }

  /** Shows another tab or lock, and adds an entry to the browser's history. */
  #go(change) {
    history.pushState(null, '', toHash({ tab: this.#tab, ...this.#query, ...change }));
    this.#follow();
  }

  /** Shows other locks, or the same in another order. */
  #ask(change) {
    history.replaceState(null, '', toHash({ tab: this.#tab, ...this.#query, ...change }));
    this.#follow();
  }

  /** Shows what the address selects. */
  #follow() {
    const { tab, ...query } = fromHash(location.hash);
    const isNew = JSON.stringify(query) !== JSON.stringify(this.#query);
    this.#tab = tab;
    this.#query = query;
    this.#tabs.select(tab);
    this.#table.setOrder(query.sort, query.order);
    if (document.activeElement !== this.#search) this.#search.value = query.search;
    this.#showLock(query.lock);
    // The lock is requested by name, because it may move to another page of the table.
    if (isNew) this.#feed.open(query);
  }

  #showLock(name) {
    if (name === (this.#dialog.shown ?? '')) return;
    if (name === '') return this.#dialog.close();
    this.#dialog.open(name);
    if (this.#known.has(name)) this.#dialog.update(this.#known.get(name), this.#releasePlace());
  }

  /** The update contains only what has changed. */
  #update({ now, seen, readOnly, place, outage, summary, locks, lock, synchronizers, results, clients, events }) {
    setServerTime(now);
    const isFirst = this.#seen === 0 && seen > 0;
    this.#seen = seen ?? this.#seen;
    this.#summary = summary ?? this.#summary;
    if (readOnly !== undefined) this.#readOnly = readOnly;
    if (place) this.#setPlace(place);
    if (summary || isFirst) this.#setSummary(this.#summary);
    if (locks) this.#setLocks(locks);
    if (lock !== undefined && this.#dialog.shown === this.#query.lock) this.#dialog.update(lock, this.#releasePlace());
    if (synchronizers) this.#synchronizers.set(synchronizers);
    if (results) this.#results.set(results);
    if (clients) this.#clients.set(clients);
    if (events) this.#events.set(events);
    if (outage !== undefined) this.#setOutage(outage);
    this.#table.markLongWaits();
    this.#showEmpty();
    this.#showLive();
    if (this.#summary) this.dataset.ready = 'yes';
  }

  #setPlace(place) {
    this.#place = place;
    this.#where.replaceChildren(...placeParts(place));
  }

  /** Shows the environment beside the release button, so that production is recognised. */
  #releasePlace() {
    if (this.#readOnly) return undefined;
    return make('p', { class: 'where' }, ...placeParts(this.#place));
  }

  #setSummary({ held, waiting, waitsSince, synchronizers, results, clients, events, incomplete }) {
    const figure = (title, value, mark) =>
      make('div', { class: mark ? 'marked' : '' }, make('dt', {}, title), make('dd', {}, value));
    const isKnown = this.#seen > 0;
    this.#figures.replaceChildren(
      figure('Held', isKnown ? number(held) + (incomplete ? '+' : '') : '–'),
      figure('Waiting', isKnown ? number(waiting) : '–', waiting > 0),
      figure('Longest wait', ago(waitsSince), waitsSince !== null),
      figure('Clients', isKnown ? number(clients) : '–'),
      figure('Events', number(events), events > 0),
    );
    this.#tabs.setTitle('locks', isKnown ? `Locks (${number(held)})` : 'Locks');
    this.#tabs.setTitle('semaphores', isKnown ? `Semaphores (${number(synchronizers)})` : 'Semaphores');
    this.#tabs.setTitle('results', isKnown ? `Results (${number(results)})` : 'Results');
    this.#tabs.setTitle('clients', isKnown ? `Clients (${number(clients)})` : 'Clients');
    this.#tabs.setTitle('events', `Events (${number(events)})`);
    // Environment and host distinguish browser tabs.
    const title = ['Locks', this.#place?.environment, location.host].filter(Boolean).join(' · ');
    document.title = `${waiting > 0 ? `(${waiting} waiting) ` : ''}${title}`;
  }

  /** An unchanged row contains only its name. */
  #setLocks({ matching, page, pages, size, rows }) {
    const locks = rows.map((row) => this.#asKnown(row)).filter(Boolean);
    this.#known = new Map(locks.map((lock) => [lock.name, lock]));
    this.#query.page = page;
    this.#table.setLocks(locks);
    this.#table.hidden = matching === 0;
    const { search } = this.#query;
    const first = (page - 1) * size + 1;
    const range = matching === 0 ? '' : `${number(first)}–${number(first + rows.length - 1)} of ${number(matching)}`;
    setText(this.#range, range);
    this.#previous.disabled = page <= 1;
    this.#next.disabled = page >= pages;
    this.#range.parentElement.hidden = pages <= 1;
    // A screen reader announces the result of a search or a new page, but not the changes of every second.
    const asked = `${search}|${page}`;
    if (asked === this.#announced) return;
    this.#announced = asked;
    setText(this.#status, search ? `${number(matching)} locks match` : `Locks ${range || 'none'}`);
  }

  /** An unchanged row is the same object, so that it is not rendered again. */
  #asKnown(row) {
    if (typeof row === 'string') return this.#known.get(row);
    const known = this.#known.get(row.name);
    return known && JSON.stringify(known) === JSON.stringify(row) ? known : row;
  }

  #showEmpty() {
    if (!this.#summary) return;
    this.#empty.hidden = !this.#table.hidden;
    const { search } = this.#query;
    if (this.#seen === 0) return setText(this.#empty, 'The locks could not be read yet.');
    if (search === '') return setText(this.#empty, 'No lock is held.');
    this.#empty.replaceChildren('No lock that is held matches “', foreign(search), '”.');
  }

  #setTrouble(text) {
    if (text === this.#trouble) return;
    this.#trouble = text;
    this.#showTrouble();
  }

  #setOutage(outage) {
    this.#outage = outage;
    this.#showTrouble();
  }

  #showLive() {
    const isLive = this.#trouble === undefined && this.#outage === null;
    const live = this.#feed.mode === 'stream' ? 'Live' : 'Live, every 2 s';
    const age = serverTime() - this.#seen;
    const asOf = age > OLD ? `, as of ${Math.round(age / 1_000)} s ago` : '';
    if (this.#summary || !isLive) setText(this.#live, isLive ? live + asOf : 'Not live');
    this.classList.toggle('stale', !isLive);
  }

  #showTrouble() {
    this.#showLive();
    const text = this.#trouble ?? (this.#outage ? `The locks cannot be read: ${this.#outage.message}` : undefined);
    if (text === undefined) {
      if (this.#alert.firstChild) setText(this.#status, 'The locks are read again.');
      return this.#alert.replaceChildren();
    }
    const age = this.#seen > 0 ? ['The data is from ', ago(this.#seen), ' ago.'] : ['There is no data yet.'];
    this.#alert.replaceChildren(make('p', {}, foreign(text)), make('p', { 'aria-live': 'off' }, ...age));
  }
}

customElements.define('lock-board', LockBoard);

function placeParts({ backend, keyPrefix, environment }) {
  return [
    ...(environment ? [make('strong', { class: 'environment' }, foreign(environment))] : []),
    ...(backend ? [make('span', {}, foreign(backend))] : []),
    ...(keyPrefix ? [make('span', {}, 'prefix ', make('code', {}, foreign(keyPrefix)))] : []),
  ];
}

function number(value) {
  return value.toLocaleString('en');
}
