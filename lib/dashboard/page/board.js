import './board-tabs.js';
import './lists.js';
import './lock-dialog.js';
import './lock-table.js';
import { make, setText } from './dom.js';
import { Feed } from './feed.js';
import { ago, serverTime, setServerTime } from './live-time.js';

/** Typing is over when nothing was typed for so long, in milliseconds. */
const TYPING = 200;

/** Where reading takes long, its age is shown when what is shown is so old, in milliseconds. */
const OLD = 10_000;

/** The whole page: `<lock-board>`. */
class LockBoard extends HTMLElement {
  #query = { search: '', sort: 'wait', order: 'descending', page: 1, lock: '' };
  #known = new Map();
  #readOnly = true;
  #trouble;
  #outage = null;
  #seen = 0;
  #summary;
  #announced = '';

  #table = make('lock-table', {
    sort: ({ detail }) => this.#ask({ ...detail, page: 1 }),
    show: ({ detail }) => this.#show(this.#known.get(detail)),
  });
  #dialog = make('lock-dialog', { closed: () => this.#ask({ lock: '' }) });
  #synchronizers = make('synchronizer-list');
  #clients = make('client-list');
  #events = make('event-list');
  #tabs = make('board-tabs');
  #alert = make('div', { role: 'alert', class: 'trouble' });
  #status = make('p', { role: 'status', 'aria-live': 'polite', class: 'hidden' });
  #figures = make('dl', { class: 'figures' });
  #empty = make('p', { class: 'empty' }, 'The locks are being read.');
  #range = make('span');
  #previous = make('button', { type: 'button', click: () => this.#turn(-1) }, 'Previous');
  #next = make('button', { type: 'button', click: () => this.#turn(1) }, 'Next');
  #live = make('span', { class: 'live' });
  #feed = new Feed(
    (update) => this.#update(update),
    (trouble) => this.#setTrouble(trouble),
  );

  connectedCallback() {
    const search = make('input', {
      type: 'search',
      id: 'search',
      placeholder: 'Name, process, host, method',
      maxlength: '200',
      spellcheck: 'false',
      input: () => this.#typed(search.value),
    });
    const find = make(
      'div',
      { class: 'find', role: 'search' },
      make('label', { for: 'search' }, 'Search locks'),
      search,
    );
    const pages = make(
      'nav',
      { class: 'pages', 'aria-label': 'Pages of locks' },
      this.#previous,
      this.#range,
      this.#next,
    );
    const locks = make('div', {}, find, this.#table, this.#empty, pages);
    const note = 'Of the process that serves this page, since it started; the newest first.';
    const events = make('div', {}, make('p', { class: 'note' }, note), this.#events);
    this.append(
      make('header', {}, make('h1', {}, 'Locks'), this.#live),
      make('main', {}, this.#alert, this.#figures, this.#status, this.#tabs, this.#dialog),
    );
    this.#tabs.setPanels([
      ['locks', 'Locks', locks],
      ['clients', 'Clients', this.#clients],
      ['semaphores', 'Semaphores', this.#synchronizers],
      ['events', 'Events', events],
    ]);
    this.#table.hidden = true;
    this.#table.setOrder(this.#query.sort, this.#query.order);
    this.#feed.open(this.#query);
  }

  #typed(search) {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.#ask({ search, page: 1 }), TYPING);
  }

  #turn(step) {
    this.#ask({ page: this.#query.page + step });
  }

  /** The one that is looked at is asked for by name, as it may leave the page of locks that is shown. */
  #show(lock) {
    this.#dialog.open(lock, this.#readOnly);
    this.#ask({ lock: lock.name });
  }

  #ask(change) {
    this.#query = { ...this.#query, ...change };
    this.#table.setOrder(this.#query.sort, this.#query.order);
    this.#feed.open(this.#query);
  }

  /** Only what has changed is there. */
  #update({ now, seen, readOnly, outage, summary, locks, lock, synchronizers, clients, events }) {
    setServerTime(now);
    const isFirst = this.#seen === 0 && seen > 0;
    this.#seen = seen ?? this.#seen;
    this.#summary = summary ?? this.#summary;
    if (readOnly !== undefined) this.#readOnly = readOnly;
    if (summary || isFirst) this.#setSummary(this.#summary);
    if (locks) this.#setLocks(locks);
    if (lock !== undefined && this.#dialog.shown === this.#query.lock) this.#dialog.update(lock);
    if (synchronizers) this.#synchronizers.set(synchronizers);
    if (clients) this.#clients.set(clients);
    if (events) this.#events.set(events);
    if (outage !== undefined) this.#setOutage(outage);
    this.#table.markLongWaits();
    this.#showEmpty();
    this.#showLive();
    if (this.#summary) this.dataset.ready = 'yes';
  }

  #setSummary({ held, waiting, waitsSince, synchronizers, clients, events, incomplete }) {
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
    this.#tabs.setTitle('clients', isKnown ? `Clients (${number(clients)})` : 'Clients');
    this.#tabs.setTitle('events', `Events (${number(events)})`);
    // The host tells the tabs of several environments apart.
    document.title = `${waiting > 0 ? `(${waiting} waiting) ` : ''}Locks · ${location.host}`;
  }

  /** Of a row that has not changed, only the name is there. */
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
    // A screen reader is told what a search or a page turned up, and not each second what has changed.
    const asked = `${search}|${page}`;
    if (asked === this.#announced) return;
    this.#announced = asked;
    setText(this.#status, search ? `${number(matching)} locks match` : `Locks ${range || 'none'}`);
  }

  /** A row that is as before is the same object, so that it is not written anew. */
  #asKnown(row) {
    if (typeof row === 'string') return this.#known.get(row);
    const known = this.#known.get(row.name);
    return known && JSON.stringify(known) === JSON.stringify(row) ? known : row;
  }

  #showEmpty() {
    if (!this.#summary) return;
    this.#empty.hidden = !this.#table.hidden;
    const { search } = this.#query;
    const none = search ? `No lock that is held matches “${search}”.` : 'No lock is held.';
    setText(this.#empty, this.#seen > 0 ? none : 'The locks could not be read yet.');
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
    const age = this.#seen > 0 ? ['What is shown was seen ', ago(this.#seen), ' ago.'] : ['Nothing was seen yet.'];
    this.#alert.replaceChildren(make('p', {}, text), make('p', { 'aria-live': 'off' }, ...age));
  }
}

customElements.define('lock-board', LockBoard);

function number(value) {
  return value.toLocaleString('en');
}
