import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { BLOCKS, compile, writeBlocks } from './support/compile.js';
import { database } from './support/database.js';
import { parsePage, readPages } from './support/markdown.js';
import { type Running, startBlock } from './support/running.js';
import { toModule, typescriptBlocks } from './support/typescript-blocks.js';

const pages = readPages();
const blocks = typescriptBlocks(pages);

describe('the TypeScript in README.md and docs/', () => {
  afterAll(() =>
    Promise.all(
      ['compiled', 'broken', 'running'].map((name) => rm(join(BLOCKS, name), { recursive: true, force: true })),
    ),
  );

  it('compiles', async () => {
    const folder = join(BLOCKS, 'compiled');
    await writeBlocks(blocks, folder);
    expect(await compile(blocks, folder)).toEqual([]);
  });

  it('would not compile with a mistake in it: the error names the page and the line', async () => {
    const folder = join(BLOCKS, 'broken');
    const text = "# Page\n\n```ts\nimport { LockServise } from 'nestjs-redis-lock';\n```\n";
    const broken = parsePage('docs/page.md', text).blocks.map(toModule);
    await writeBlocks(broken, folder);
    expect(await compile(broken, folder)).toEqual([expect.stringMatching(/^docs\/page\.md:4 .*LockServise/)]);
  });

  describe('runs', () => {
    const running = blocks.filter(({ runs }) => runs);
    const folder = join(BLOCKS, 'running');
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await startRedis();
      // The pages use localhost:6379 for the reader's server.
      const ours = running.map((block) => ({
        ...block,
        source: block.source.replaceAll('redis://localhost:6379', redis.url),
      }));
      await writeBlocks(ours, folder);
      await database.exec('create table stock (sku text primary key, quantity int not null)');
      for (const sql of fencingSql()) await database.exec(sql);
      await database.exec("insert into stock (sku, quantity) values ('lamp', 40)");
    });
    afterAll(async () => {
      await redis.stop();
      await database.close();
    });

    it.each(running.map(({ place, file }) => [place, file]))('%s', async (_, file) => {
      const warnings: unknown[] = [];
      const warn = jest.spyOn(console, 'warn').mockImplementation((line) => warnings.push(line));
      const module = (await import(join(folder, file))) as { run(running: Running): Promise<unknown> };
      const { run, ...exports } = module;
      const block = await startBlock(exports, redis.url);
      try {
        await run(block);
      } finally {
        await block.app.close();
        warn.mockRestore();
      }
      expect(warnings.filter((line) => !String(line).includes("backend: 'memory' keeps locks"))).toEqual([]);
    });
  });
});

/** The SQL statements of the page about fencing, which the page's code needs. */
function fencingSql(): readonly string[] {
  const page = pages.find(({ path }) => path === 'docs/fencing-tokens.md');
  return (page?.blocks ?? []).filter(({ language }) => language === 'sql').map(({ code }) => code);
}
