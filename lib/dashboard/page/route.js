/** What the page shows unless its address says something else. */
const DEFAULTS = { search: '', sort: 'wait', order: 'descending', page: '1', lock: '' };
const TABS = ['locks', 'clients', 'semaphores', 'results', 'events'];
const SORTS = ['name', 'type', 'holder', 'method', 'since', 'lease', 'token', 'waiting', 'wait'];
const LONGEST_SEARCH = 200;

/** The fragment of an address that shows this: `#/locks?lock=order:42`. */
export function toHash({ tab = 'locks', ...query }) {
  const shown = Object.entries(query).filter(([key, value]) => String(value) !== DEFAULTS[key]);
  // Names stay readable where they can.
  const text = new URLSearchParams(shown).toString().replaceAll('%3A', ':').replaceAll('%2F', '/');
  return `#/${tab}${text && `?${text}`}`;
}

/** What the fragment of the address asks for. What it does not say, or says wrong, is the default. */
export function fromHash(hash) {
  const [, tab, text] = /^#\/(\w+)(?:\?(.*))?$/s.exec(hash) ?? [];
  const asked = { ...DEFAULTS, ...Object.fromEntries(new URLSearchParams(text)) };
  return {
    tab: TABS.includes(tab) ? tab : TABS[0],
    search: asked.search.slice(0, LONGEST_SEARCH),
    sort: SORTS.includes(asked.sort) ? asked.sort : DEFAULTS.sort,
    order: asked.order === 'ascending' ? 'ascending' : 'descending',
    page: /^[1-9]\d{0,5}$/.test(asked.page) ? Number(asked.page) : 1,
    lock: asked.lock,
  };
}
