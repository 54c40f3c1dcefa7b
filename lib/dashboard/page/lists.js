import { make } from './dom.js';
import { ago, until } from './live-time.js';
import { placeOf } from './lock-table.js';

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

/** Semaphores and latches: `<synchronizer-list>`. */
class SynchronizerList extends BoardList {
  none = 'There is no semaphore or latch.';

  table(synchronizers) {
    const titles = ['Name', 'Type', 'State', 'Held by', 'Waiting here'];
    return tableOf('Semaphores and latches', titles, synchronizers, (each) => [
      make('span', {}, each.name),
      each.type,
      each.state,
      holdersOf(each),
      String(each.waiting),
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
customElements.define('synchronizer-list', SynchronizerList);

function holdersOf({ permits, permitCount }) {
  if (permits.length === 0) return '–';
  return make('ul', {}, ...permits.map(permitItem), ...morePermits(permitCount - permits.length));
}

function permitItem(permit) {
  const id = make('code', {}, `${permit.id}…`);
  return make('li', {}, make('strong', {}, placeOf(permit)), ', lease left: ', until(permit.leaseEnds), ' ', id);
}

function morePermits(count) {
  return count > 0 ? [make('li', {}, `and ${count} more`)] : [];
}

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
