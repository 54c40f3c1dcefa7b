import './board-tabs.js';
import './lists.js';
import './lock-dialog.js';
import './lock-table.js';
import { make, setText } from './dom.js';
import { Feed } from './feed.js';
import { ago, setServerTime } from './live-time.js';

/** Typing is over when nothing was typed for so long, in milliseconds. */
const TYPING = 200;

/** The whole page: `<lock-board>`. */
class LockBoard extends HTMLElement {
  #query = { search: '', sort: 'wait', order: 'descending', page: 1 };
  #known = new Map();
  #readOnly = true;
  #trouble;
  #outage = null;
  #seen = 0;
  #announced = '';

  #table = make('lock-table', {
    sort: ({ detail }) => this.#ask({ ...detail, page: 1 }),
    show: ({ detail }) => this.#dialog.open(this.#known.get(detail), this.#readOnly),
  });
  #dialog = make('lock-dialog');
  #clients = make('client-list');
  #events = make('event-list');
  #tabs = make('board-tabs');
  #alert = make('div', { role: 'alert', class: 'trouble' });
  #status = make('p', { role: 'status', 'aria-live': 'polite', class: 'hidden' });
  #figures = make('dl', { class: 'figures' });
  #empty = make('p', { class: 'empty', hidden: true });
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
      ['events', 'Events', events],
    ]);
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

  #ask(change) {
    this.#query = { ...this.#query, ...change };
    this.#table.setOrder(this.#query.sort, this.#query.order);
    this.#feed.open(this.#query);
  }

  /** Only what has changed is there. */
  #update({ now, seen, readOnly, outage, summary, locks, clients, events }) {
    setServerTime(now);
    if (seen !== undefined) this.#seen = seen;
    if (readOnly !== undefined) this.#readOnly = readOnly;
    if (summary) this.#setSummary(summary);
    if (locks) this.#setLocks(locks);
    if (clients) this.#clients.set(clients);
    if (events) this.#events.set(events);
    if (outage !== undefined) this.#setOutage(outage);
    this.#table.markLongWaits();
    this.#showLive();
    this.dataset.ready = 'yes';
  }

  #setSummary({ held, waiting, waitsSince, clients, events, incomplete }) {
    const figure = (title, value, mark) =>
      make('div', { class: mark ? 'marked' : '' }, make('dt', {}, title), make('dd', {}, value));
    this.#figures.replaceChildren(
      figure('Held', number(held) + (incomplete ? '+' : '')),
      figure('Waiting', number(waiting), waiting > 0),
      figure('Longest wait', ago(waitsSince), waitsSince !== null),
      figure('Clients', number(clients)),
      figure('Events', number(events), events > 0),
    );
    this.#tabs.setTitle('locks', `Locks (${number(held)})`);
    this.#tabs.setTitle('clients', `Clients (${number(clients)})`);
    this.#tabs.setTitle('events', `Events (${number(events)})`);
    document.title = waiting > 0 ? `(${waiting} waiting) Locks` : 'Locks';
  }

  /** Of a row that has not changed, only the name is there. */
  #setLocks({ matching, page, pages, size, rows }) {
    const locks = rows.map((row) => (typeof row === 'string' ? this.#known.get(row) : row)).filter(Boolean);
    this.#known = new Map(locks.map((lock) => [lock.name, lock]));
    this.#query.page = page;
    this.#table.setLocks(locks);
    this.#table.hidden = matching === 0;
    this.#empty.hidden = matching > 0;
    const { search } = this.#query;
    setText(this.#empty, search ? `No lock that is held matches “${search}”.` : 'No lock is held.');
    const first = (page - 1) * size + 1;
    const range = matching === 0 ? '' : `${number(first)}–${number(first + rows.length - 1)} of ${number(matching)}`;
    setText(this.#range, range);
    this.#previous.disabled = page <= 1;
    this.#next.disabled = page >= pages;
    this.#range.parentElement.hidden = pages <= 1;
    if (this.#dialog.shown !== undefined) this.#dialog.update(this.#known.get(this.#dialog.shown));
    // A screen reader is told what a search or a page turned up, and not each second what has changed.
    const asked = `${search}|${page}`;
    if (asked === this.#announced) return;
    this.#announced = asked;
    setText(this.#status, search ? `${number(matching)} locks match` : `Locks ${range || 'none'}`);
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
    setText(this.#live, isLive ? live : 'Not live');
    this.classList.toggle('stale', !isLive);
  }

  #showTrouble() {
    this.#showLive();
    const text = this.#trouble ?? (this.#outage ? `The locks cannot be read: ${this.#outage.message}` : undefined);
    if (text === undefined) return this.#alert.replaceChildren();
    const age = this.#seen > 0 ? ['What is shown was seen ', ago(this.#seen), ' ago.'] : ['Nothing was seen yet.'];
    this.#alert.replaceChildren(make('p', {}, text), make('p', { 'aria-live': 'off' }, ...age));
  }
}

customElements.define('lock-board', LockBoard);

function number(value) {
  return value.toLocaleString('en');
}
