import { foreign, make, SHORT } from './dom.js';
import { ago, until } from './live-time.js';
import { placeOf } from './lock-table.js';
import { toHash } from './route.js';

const KINDS = { lost: 'Lost', deadlock: 'Deadlock', released: 'Released by force' };

/** A list that is rendered again when it has changed. */
class BoardList extends HTMLElement {
  set(items) {
    this.replaceChildren(items.length === 0 ? make('p', { class: 'empty' }, this.none) : this.table(items));
  }
}

/** The processes that use locks: `<client-list>`. */
class ClientList extends BoardList {
  none = 'No process holds a lock or waits for one.';

  table(clients) {
    const titles = ['Process', 'Version', 'Up for', 'Holds', 'Waiting', 'Longest wait', 'Blocked for'];
    return tableOf('Clients', titles, clients, (client) => [
      make('span', {}, placeOf(client), client.mine ? ' (serves this page)' : ''),
      client.version ? foreign(client.version) : '–',
      ago(client.since),
      String(client.held),
      String(client.waiting),
      ago(client.waitsSince),
      client.blockedSince === null ? '–' : ago(client.blockedSince),
    ]);
  }
}

/** Semaphores and latches: `<synchronizer-list>`. */
class SynchronizerList extends BoardList {
  none = 'There is no semaphore or latch.';

  table(synchronizers) {
    const titles = ['Name', 'Type', 'State', 'Held by', 'Waiting here'];
    return tableOf('Semaphores and latches', titles, synchronizers, (each) => [
      foreign(each.name, SHORT),
      each.type,
      each.state,
      holdersOf(each),
      String(each.waiting),
    ]);
  }
}

/** The kept results of single flights: `<result-list>`. */
class ResultList extends BoardList {
  none = 'No result of a single flight is kept.';

  table(results) {
    return tableOf('Results of single flights', ['Name', 'Size', 'Kept for'], results, (each) => [
      foreign(each.name, SHORT),
      each.size,
      until(each.keptUntil),
    ]);
  }
}

/** Losses, deadlocks and releases by force: `<event-list>`. */
class EventList extends BoardList {
  none = 'No lock was lost in the process that serves this page, and no deadlock was found.';

  table(events) {
    this.classList.toggle(
      'without-methods',
      events.every(({ method }) => method === ''),
    );
    return tableOf('Events', ['Lock', 'Event', 'Ago', 'In', 'What happened'], events, (event) => [
      make('a', { class: 'name', href: toHash({ tab: 'events', lock: event.name }) }, foreign(event.name, SHORT)),
      KINDS[event.kind] ?? event.kind,
      ago(event.at),
      event.method ? foreign(event.method) : '–',
      foreign(event.text),
    ]);
  }
}

customElements.define('client-list', ClientList);
customElements.define('event-list', EventList);
customElements.define('result-list', ResultList);
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
    const size = head.textContent.length > SHORT ? '' : 'short';
    const first = make('th', { scope: 'row', 'data-title': titles[0], class: size }, head);
    const others = cells.map((cell, n) =>
      make('td', { 'data-title': titles[n + 1], class: cell === '–' ? 'none' : undefined }, cell),
    );
    return make('tr', {}, first, ...others);
  });
  const head = make('thead', {}, make('tr', {}, ...headers));
  return make('table', {}, make('caption', { class: 'hidden' }, caption), head, make('tbody', {}, ...rows));
}
