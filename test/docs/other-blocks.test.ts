import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLockService, LockService } from 'nestjs-redis-lock';
import { ACL_RECIPE } from '../chaos/security/acl-recipe.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { Database } from './support/database.js';
import { type CodeBlock, ROOT, readPages } from './support/markdown.js';

/** Languages that have a check here or in code.test.ts. Blocks in other languages are not executed. */
const CHECKED = ['ts', 'typescript', 'sh', 'bash', 'sql', 'acl', 'json'];
const SHOWN = ['text', 'mermaid', 'java', 'js', 'http', 'promql', 'yaml', 'dockerfile'];

const blocks = readPages().flatMap(({ blocks }) => blocks);
const of = (...languages: string[]): readonly (readonly [string, CodeBlock])[] =>
  blocks
    .filter(({ language, directives }) => languages.includes(language) && !directives.has('skip'))
    .map((block) => [block.place, block] as const);

describe('the blocks that are not TypeScript', () => {
  it('have a language that is known here', () => {
    const unknown = blocks.filter(({ language }) => ![...CHECKED, ...SHOWN].includes(language));
    expect(unknown.map(({ place, language }) => `${place}: '${language}'`)).toEqual([]);
  });

  it('name only npm scripts and suites that exist', async () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object };
    const { SUITES: suites } = await import(`${ROOT}/.ci/suites.mjs`);
    expect(
      of('sh', 'bash').flatMap(([place, { code }]) =>
        unknownScripts(code, scripts, suites).map((name) => [place, name]),
      ),
    ).toEqual([]);
    expect(unknownScripts('npm ci && npm run no-such -- --flag', scripts, suites)).toEqual(['no-such']);
    expect(unknownScripts('npm run suite -- docs; npm run suite -- no-suite', scripts, suites)).toEqual([
      'suite -- no-suite',
    ]);
  });

  it('have in README the commands that try the library out, and the one that .ci/run calls', () => {
    const readme = of('sh').filter(([place]) => place.startsWith('README.md'));
    const commands = readme.flatMap(([, { code }]) => code.split('\n').map((line) => line.replace(/\s*#.*/, '')));
    expect(commands).toEqual(expect.arrayContaining(['npm ci && npm run demo', 'npm ci && npm test']));
    expect(readFileSync(join(ROOT, '.ci/run'), 'utf8').split('\n')).toContain('npm ci && npm test');
  });

  it('are JSON where they say so', () => {
    for (const [, { code }] of of('json')) JSON.parse(code);
  });
});

function unknownScripts(code: string, scripts: object, suites: object): readonly string[] {
  const named = [...code.matchAll(/\bnpm (?:run (?:--silent )?)([\w:-]+)(?: -- ([\w-]+))?/g)];
  return named
    .filter(([, script, suite]) => !(script in scripts) || (script === 'suite' && !(suite in suites)))
    .map(([, script, suite]) => (script in scripts ? `${script} -- ${suite}` : script));
}

describe('the SQL', () => {
  const database = new Database();
  beforeAll(() => database.exec('create table stock (sku text primary key, quantity int not null)'));
  afterAll(() => database.close());

  // A block for another database has the directive `skip`, and a test of its own.
  it.each(of('sql'))('%s runs on PostgreSQL', async (_, { code }) => {
    await database.exec(code);
  });
});

describe('the fencing SQL', () => {
  const database = new Database();
  afterAll(() => database.close());
  const PAGE = 'docs/fencing-tokens.md';
  const updateOf = (path: string) =>
    /update stock set quantity[^'`]*/.exec(readFileSync(join(ROOT, path), 'utf8'))?.[0];
  const update = updateOf(PAGE) ?? '';

  it('is the same in README.md', () => {
    expect(updateOf('README.md')).toBe(update);
  });

  it('accepts a token again, and a later one, but none that is lower', async () => {
    await database.exec('create table stock (sku text primary key, quantity int not null)');
    for (const [, { code }] of of('sql').filter(([place]) => place.startsWith(PAGE))) await database.exec(code);
    await database.exec("insert into stock (sku, quantity) values ('lamp', 40)");
    const token = 1_784_000_000_000_000;
    const changed = async (quantity: number, fence: number) =>
      (await database.query(update, [quantity, fence, 'lamp'])).rowCount;
    expect([await changed(39, token), await changed(38, token), await changed(37, token + 1)]).toEqual([1, 1, 1]);
    expect(await changed(99, token)).toBe(0);
    expect((await database.query('select quantity from stock')).rows).toEqual([{ quantity: 37 }]);
  });
});

describe('the permissions', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('are those of the recipe, each of which is shown to be needed', () => {
    const { keys, channels, connection, scripts, replicas, cluster } = ACL_RECIPE;
    const [[, block]] = of('acl');
    expect(block.code.trim().split(/\s+/).slice(5).sort()).toEqual(
      [...keys, ...channels, ...connection, ...scripts].sort(),
    );
    const { text = '' } = readPages().find(({ path }) => path === 'docs/permissions.md') ?? {};
    for (const rights of [replicas, cluster]) expect(text).toContain(`\`${rights.join(' ')}\``);
  });

  it.each(of('acl'))('%s: a user with these rights can use locks', async (_, { code }) => {
    const [command, ...args] = code.trim().split(/\s+/);
    await redis.client().call(command, ...args);
    const [user] = args.slice(1);
    const locks = createLockService({ connection: redis.url.replace('//', `//${user}:password@`), waitTime: '10s' });
    try {
      await useEverything(locks);
    } finally {
      await locks.close();
    }
  });
});

/** Uses each kind of lock, with a caller that waits for it, and semaphores and latches. */
async function useEverything(locks: LockService): Promise<void> {
  for (const type of ['reentrant', 'fair', 'read', 'write', 'fenced'] as const) {
    const both = [1, 2].map(() =>
      locks.withLock(`lock of type ${type}`, { type }, async (lease) => lease.assertHeld()),
    );
    await Promise.all(both);
  }
  const semaphore = locks.getPermitExpirableSemaphore('semaphore');
  await semaphore.trySetPermits(1);
  await semaphore.release(await semaphore.acquire());
  const latch = locks.getCountDownLatch('latch');
  await latch.trySetCount(1);
  await latch.countDown();
  await latch.await();
}
