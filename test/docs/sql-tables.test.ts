import { createOthers, createRows } from '../../lib/sql/server/create-tables.js';
import { quoteTable } from '../../lib/sql/server/table-name.js';
import { readPages } from './support/markdown.js';

describe('the statements of locks-in-sql.md that create tables', () => {
  const { text = '' } = readPages().find(({ path }) => path === 'docs/locks-in-sql.md') ?? {};
  const [, section = ''] = /^## Tables for a migration\n([\s\S]*?)(?=^## )/m.exec(text) ?? [];
  const blocks = [...section.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, code = '']) => code.trim().split('\n'));

  it.each([
    ['postgres', 0],
    ['mysql', 1],
  ] as const)('are those of the library: %s', (database, block) => {
    const tables = quoteTable('distributed_lock', database === 'postgres' ? '"' : '`');
    const statements = [createRows(database, tables), ...createOthers(database, tables)];
    // These names need no quotes.
    expect(blocks[block]).toEqual(statements.map((text) => `${text.replace(/["`](\w{2,})["`]/g, '$1')};`));
  });
});
