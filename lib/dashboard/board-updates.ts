import type { BoardMessage } from './board-view.js';

/** The complete message, for a single request. */
export function wholeText({ seen, parts, page, rows }: BoardMessage): string {
  const shown = rows.map(([, text]) => text);
  return textOf(
    seen,
    parts.map(({ name, text }) => [name, text]),
    pageText(page, shown),
  );
}

/**
 * Creates updates for one viewer. They contain only what has changed since the last one. For an unchanged row, they
 * contain only its name.
 */
export class BoardUpdates {
  private parts = new Map<string, string>();
  private page = '';
  private rows: ReadonlyMap<string, string> = new Map();

  next({ seen, parts, page, rows }: BoardMessage): string {
    const changed = parts
      .filter(({ name, text, steady = text }) => this.isNew(name, steady))
      .map(({ name, text }) => [name, text] as const);
    const before = [...this.rows];
    const isSame =
      page === this.page &&
      rows.length === before.length &&
      rows.every(([name, text], n) => name === before[n][0] && text === before[n][1]);
    if (isSame) return textOf(seen, changed);
    const shown = rows.map(([name, text]) => (this.rows.get(name) === text ? JSON.stringify(name) : text));
    this.page = page;
    this.rows = new Map(rows);
    return textOf(seen, changed, pageText(page, shown));
  }

  private isNew(part: string, text: string): boolean {
    if (this.parts.get(part) === text) return false;
    this.parts.set(part, text);
    return true;
  }
}

function pageText(page: string, rows: readonly string[]): string {
  return `${page.slice(0, -1)},"rows":[${rows.join(',')}]}`;
}

function textOf(seen: number, parts: readonly (readonly [name: string, text: string])[], locks?: string): string {
  const all = locks === undefined ? parts : [...parts, ['locks', locks]];
  return `{"now":${Date.now()},"seen":${seen}${all.map(([name, text]) => `,"${name}":${text}`).join('')}}`;
}
