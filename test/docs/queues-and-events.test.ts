import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/service/lock-service.js';
import { openWorld, STORES } from '../support/lock-world.js';
import { latch } from '../support/section.js';
import { until } from '../support/until.js';
import { BLOCKS, writeBlocks } from './support/compile.js';
import { readPages } from './support/markdown.js';
import { toModule } from './support/typescript-blocks.js';

type Put = (job: () => Promise<void>) => unknown;

/** Older versions of a library, by their names in test/docs/package.json. */
const OLDER: Readonly<Record<string, string>> = { 'p-queue': 'p-queue7' };

const folder = join(BLOCKS, 'queues');
const page = readPages().find(({ path }) => path === 'docs/queues-and-events.md');

/** Each queue of the page, as it stands there and without its remedy. */
const queues = (page?.blocks ?? [])
  .filter(({ code }) => code.includes('export const put = '))
  .flatMap((block, index) => {
    const [library] = [...block.code.matchAll(/from '([\w-]+)'/g)]
      .map(([, name]) => name)
      .filter((name) => name !== 'nestjs-redis-lock');
    const remedy = block.code.includes('outsideLocks') ? 'outsideLocks()' : 'AsyncResource.bind()';
    return [library, OLDER[library]]
      .filter((name) => name !== undefined)
      .map((name) => {
        const { source } = toModule({ ...block, code: block.code.replace(`'${library}'`, `'${name}'`) });
        return { title: name, remedy, file: `queue-${index}-${name}.ts`, source };
      });
  });

const bare = (file: string) => `without-remedy-${file}`;

function withoutRemedy(source: string): string {
  return source
    .replace(/^import \{ outsideLocks \}.*$/m, 'const outsideLocks = <T>(work: () => T): T => work();')
    .replace('AsyncResource.bind(job)', 'job');
}

async function load(file: string): Promise<Put> {
  return ((await import(join(folder, file))) as { put: Put }).put;
}

/**
 * While a caller holds the lock of the stock, it puts a job of its own into the queue. Others, who hold nothing, put
 * in jobs that take one from the stock. What the holder has read must still be true when it writes.
 *
 * @returns what remains of 10, and how many took one away
 */
async function sell(locks: LockService, put: Put, jobs: number, reentry: boolean): Promise<string> {
  let stock = 10;
  let sold = 0;
  const sellOne = () =>
    locks.withLock('stock', { reentry }, async () => {
      const found = stock;
      await sleep(5);
      stock = found - 1;
      sold++;
    });
  const [holderHasPut, othersHavePut] = [latch(), latch()];
  const holder = locks.withLock('stock', async () => {
    const found = stock;
    void put(() => othersHavePut.promise);
    holderHasPut.open();
    // Until the jobs wait for the lock, as they should, or have run beside this body.
    await until(async () => sold === jobs || (await locks.inspect('stock')).waiting > 0);
    stock = found - 1;
    sold++;
  });
  await holderHasPut.promise;
  for (let n = 0; n < 3; n++) void put(() => sellOne()); // DataLoader loads equal keys once
  othersHavePut.open();
  await holder;
  await until(() => sold === jobs + 1);
  return `${sold} sold, ${stock} left`;
}

describe('the queues of docs/queues-and-events.md', () => {
  beforeAll(() =>
    writeBlocks(
      queues.flatMap(({ file, source }) => [
        { place: file, file, source, runs: false },
        { place: file, file: bare(file), source: withoutRemedy(source), runs: false },
      ]),
      folder,
    ),
  );

  it('are these', () => {
    expect(queues.map(({ title, remedy }) => `${title}: ${remedy}`)).toEqual([
      'p-queue: outsideLocks()',
      'p-queue7: outsideLocks()',
      'p-limit: outsideLocks()',
      'fastq: outsideLocks()',
      'async: outsideLocks()',
      'dataloader: outsideLocks()',
      'lodash: outsideLocks()',
      'p-queue: AsyncResource.bind()',
      'p-queue7: AsyncResource.bind()',
    ]);
  });

  describe.each(STORES)('on %s', (store) => {
    const world = openWorld(store);

    describe.each(queues)('$title, with $remedy', ({ title, file }) => {
      // Of several calls, debounce runs the last one.
      const jobs = title === 'lodash' ? 1 : 3;
      const right = `${jobs + 1} sold, ${10 - jobs - 1} left`;
      const wrong = `${jobs + 1} sold, 9 left`;

      it('runs jobs beside the holder of their lock without it', async () => {
        expect(await sell(await world.service(), await load(bare(file)), jobs, true)).toBe(wrong);
      });

      it('lets jobs wait for the holder with it', async () => {
        expect(await sell(await world.service(), await load(file), jobs, true)).toBe(right);
      });

      it('lets jobs wait for the holder with reentry: false in its place', async () => {
        expect(await sell(await world.service(), await load(bare(file)), jobs, false)).toBe(right);
      });
    });

    it.each(queues.filter(({ remedy }) => remedy === 'AsyncResource.bind()'))(
      '$title, with $remedy, lets a job that the holder awaits enter its lock',
      async ({ file }) => {
        const [put, locks] = [await load(file), await world.service()];
        const owners: string[] = [];
        const job = () => locks.withLock('stock', ({ owner }) => void owners.push(owner));
        await locks.withLock('stock', async ({ owner }) => {
          owners.push(owner);
          await put(job);
        });
        expect(owners).toEqual([owners[0], owners[0]]);
      },
    );
  });
});
