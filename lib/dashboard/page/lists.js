import { make } from './dom.js';
import { ago } from './live-time.js';

const KINDS = { lost: 'Lost', deadlock: 'Deadlock', released: 'Released by force' };

/** A list that is written anew when it has changed. */
class BoardList extends HTMLElement {
  set(items) {
    this.replaceChildren(items.length === 0 ? make('p', { class: 'empty' }, this.none) : this.table(items));
  }
}

/** The processes that use locks: `<client-list>`. */
class ClientList extends BoardList {
  none = 'No process has told that it holds a lock or waits for one.';

  table(clients) {
    const titles = ['Process', 'Version', 'Up for', 'Holds', 'Waiting', 'Longest wait'];
    return tableOf('Clients', titles, clients, (client) => [
      `${client.application} on ${client.host}, pid ${client.pid}${client.mine ? ' (serves this page)' : ''}`,
      client.version || '–',
      ago(client.since),
      String(client.held),
      String(client.waiting),
      ago(client.waitsSince),
    ]);
  }
}

/** Losses, deadlocks and releases by force: `<event-list>`. */
class EventList extends BoardList {
  none = 'No lock was lost in the process that serves this page, and no deadlock was found.';

  table(events) {
    return tableOf('Events', ['Lock', 'Event', 'Ago', 'In', 'What happened'], events, (event) => [
      event.name,
      KINDS[event.kind] ?? event.kind,
      ago(event.at),
      event.method || '–',
      event.text,
    ]);
  }
}

customElements.define('client-list', ClientList);
customElements.define('event-list', EventList);

function tableOf(caption, titles, items, cellsOf) {
  const headers = titles.map((title) => make('th', { scope: 'col' }, title));
  const rows = items.map((item) => {
    const [head, ...cells] = cellsOf(item);
    const first = make('th', { scope: 'row', 'data-title': titles[0] }, head);
    return make('tr', {}, first, ...cells.map((cell, n) => make('td', { 'data-title': titles[n + 1] }, cell)));
  });
  const head = make('thead', {}, make('tr', {}, ...headers));
  return make('table', {}, make('caption', { class: 'hidden' }, caption), head, make('tbody', {}, ...rows));
}
