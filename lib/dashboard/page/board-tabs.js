import { make, setText } from './dom.js';

/** Tabs with arrow-key navigation: `<board-tabs>`. It emits `choose` when a tab is selected. */
class BoardTabs extends HTMLElement {
  #tabs = [];

  /** @param panels `[id, title, element]` */
  setPanels(panels) {
    const list = make('div', { role: 'tablist', 'aria-label': 'What is shown', keydown: (event) => this.#key(event) });
    this.append(list);
    for (const [id, title, content] of panels) {
      const attributes = { type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': `panel-${id}` };
      const tab = make('button', { ...attributes, click: () => this.#choose(id) }, title);
      const panel = make('section', { role: 'tabpanel', id: `panel-${id}`, 'aria-labelledby': `tab-${id}` }, content);
      list.append(tab);
      this.append(panel);
      this.#tabs.push({ id, tab, panel });
    }
  }

  setTitle(id, title) {
    setText(this.#tabs.find((tab) => tab.id === id).tab, title);
  }

  select(id) {
    for (const { id: other, tab, panel } of this.#tabs) {
      const selected = other === id;
      tab.setAttribute('aria-selected', String(selected));
      tab.tabIndex = selected ? 0 : -1;
      panel.hidden = !selected;
    }
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const present = this.#tabs.findIndex(({ tab }) => tab.tabIndex === 0);
    const next = this.#tabs[(present + step + this.#tabs.length) % this.#tabs.length];
    this.#choose(next.id);
    next.tab.focus();
  }

  #choose(id) {
    this.dispatchEvent(new CustomEvent('choose', { detail: id }));
  }
}

customElements.define('board-tabs', BoardTabs);
