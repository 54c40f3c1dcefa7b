import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { until } from '../support/until.js';
import { ONE_LIBRARY, packLibrary } from './throw-away-app.js';

const MOST_BYTES = 500_000;
const MOST_FILES = 120;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BOTH_COPIES = fileURLToPath(new URL('programs/both-copies.mjs', import.meta.url));
/** The path in a Markdown link or picture that is neither a URL nor an anchor. */
const RELATIVE_LINK = /\]\((?!\w+:|#)([^)#\s]+)/g;
const execute = promisify(execFile);

describe('the tarball', () => {
  let folder: string;
  let tarball: string;
  let files: readonly string[];
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'published-'));
    tarball = await packLibrary(folder);
    await execute('tar', ['-xzf', tarball, '-C', folder]);
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const found = await readdir(join(folder, 'package'), { recursive: true, withFileTypes: true });
    files = found.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  }, 120_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const search = async (kind: RegExp, pattern: RegExp): Promise<string[]> => {
    const texts = await Promise.all(files.filter((file) => kind.test(file)).map((file) => readFile(file, 'utf8')));
    expect(texts).not.toEqual([]);
    return texts.flatMap((text) => text.match(pattern) ?? []);
  };

  it(`has at most ${MOST_BYTES / 1_000} kB in ${MOST_FILES} files`, async () => {
    expect((await stat(tarball)).size).toBeLessThan(MOST_BYTES);
    expect(files.length).toBeLessThan(MOST_FILES);
  });

  it('is one library when it is both imported and required', async () => {
    // As it is installed, but with the packages of this repository. test/package/package.test.ts installs fresh ones.
    const app = join(folder, 'app');
    await mkdir(join(app, 'node_modules'), { recursive: true });
    await cp(join(folder, 'package'), join(app, 'node_modules/nestjs-redis-lock'), { recursive: true });
    await cp(BOTH_COPIES, join(app, 'both-copies.mjs'));
    const env = { ...process.env, NODE_OPTIONS: '' };
    const { stdout } = await execute(process.execPath, ['both-copies.mjs'], { cwd: app, env });
    expect(JSON.parse(stdout)).toEqual(ONE_LIBRARY);
  }, 60_000);

  it('loads the scripts in JavaScript only for locks in memory', async () => {
    const program = `
      const { createLockService } = require('./package/dist/cjs/index.js');
      const isLoaded = () => Object.keys(require.cache).some((file) => file.includes('open-server'));
      const use = async (options) => {
        const locks = createLockService({ waitTime: 0, outageTimeout: 0, logger: { warn() {}, error() {} }, ...options });
        await locks.withLock('order', () => {}).catch(() => {});
        await locks.close();
        return isLoaded();
      };
      use({ connection: 'redis://127.0.0.1:1' }).then(async (redis) =>
        console.log(JSON.stringify([redis, await use({ backend: 'memory' })])));`;
    const { stdout } = await execute(process.execPath, ['-e', program], {
      cwd: folder,
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    expect(JSON.parse(stdout)).toEqual([false, true]);
  }, 60_000);

  it('declares each class once in a format, under its own name', async () => {
    expect(await search(/\.js$/, /\bclass \w+\$\d/g)).toEqual([]);
    const shared = await search(
      /\.js$/,
      /\bclass (BackendError|LockService|NodeHealth|SnapshotFeed|SqlLockBackend)\b/g,
    );
    expect(shared.sort()).toEqual(
      ['BackendError', 'LockService', 'NodeHealth', 'SnapshotFeed', 'SqlLockBackend'].map((name) => `class ${name}`),
    );
  });

  it('keeps all names, for those who read and debug it', async () => {
    expect(await search(/core\.js$/, /function toClientId\(uuid\)/g)).toHaveLength(1);
    expect(await search(/nest\.js$/, /const lease = await call\.acquire\(\)/g)).not.toEqual([]);
  });

  it('has types that bring what `await using` needs, and need no driver of a database', async () => {
    // The modules in esm re-export most of them.
    const types = files.filter((file) => /\/cjs\/\w+\.d\.ts$/.test(file));
    const references = await search(/\/cjs\/\w+\.d\.ts$/, /^\/\/\/ <reference lib="esnext.disposable" \/>$/gm);
    expect(references).toHaveLength(types.length);
    expect(await search(/\.d\.ts$/, /from '(pg|mysql2)[^']*'/g)).toEqual([]);
  });

  it('has no scripts, so that installing it runs nothing', async () => {
    const manifest = JSON.parse(await readFile(join(folder, 'package/package.json'), 'utf8'));
    const ours = ['scripts', 'devDependencies', 'overrides', 'allowScripts'];
    expect(ours.filter((field) => field in manifest)).toEqual([]);
    expect(manifest.dependencies).toEqual({ ms: expect.any(String) });
  });

  it('has the same bytes as one that npm pack makes in a clone, which leaves package.json as it was', async () => {
    const clone = await cloneOf(join(folder, 'clone'));
    const before = await readFile(join(clone, 'package.json'), 'utf8');
    await execute('npm', ['pack'], { cwd: clone, env: { ...process.env, NODE_OPTIONS: '' } });
    expect(await digestOf(join(clone, basename(tarball)))).toBe(await digestOf(tarball));
    expect(await readFile(join(clone, 'package.json'), 'utf8')).toBe(before);
  }, 300_000);

  it.each(['fails', 'is interrupted'])(
    'has the whole package.json again when packing %s',
    async (end) => {
      const clone = await cloneOf(join(folder, `clone that ${end}`));
      const manifest = () => readFile(join(clone, 'package.json'), 'utf8');
      const before = await manifest();
      const destination = join(folder, 'missing');
      const npm = spawn('npm', ['pack', '--pack-destination', destination], {
        cwd: clone,
        env: { ...process.env, NODE_OPTIONS: '' },
        stdio: 'ignore',
        detached: true,
      });
      const ended = once(npm, 'exit');
      if (end === 'is interrupted') {
        await until(async () => (await manifest()) !== before, 240_000);
        process.kill(-(npm.pid ?? 0), 'SIGINT'); // as Ctrl-C does, to all processes of the terminal
      }
      expect(await ended).not.toEqual([0, null]);
      await until(async () => (await manifest()) === before, 10_000);
    },
    300_000,
  );

  it('is described for agents and new readers', () => {
    const names = files.map((file) => relative(join(folder, 'package'), file));
    expect(names).toEqual(expect.arrayContaining(['docs/llms.txt', 'docs/SKILL.md', 'docs/security-review.md']));
  });

  it('has pages whose relative links lead to what is in it', async () => {
    const pages = files.filter((file) => /\.(md|txt)$/.test(file));
    expect(pages.map((page) => basename(page))).toEqual(expect.arrayContaining(['README.md', 'llms.txt']));
    const missing: string[] = [];
    for (const page of pages) {
      const text = await readFile(page, 'utf8');
      for (const [, target = ''] of text.matchAll(RELATIVE_LINK)) {
        if (!files.includes(join(dirname(page), target))) missing.push(`${basename(page)}: ${target}`);
      }
    }
    expect(missing).toEqual([]);
  });

  it('has types without what is internal', async () => {
    expect(await search(/\.d\.ts$/, /@internal|\bclass (LockLease|LockEngine|LockQueue)\b/g)).toEqual([]);
  });
});

/** The files of this repository as they are now, even if they are not committed. */
async function cloneOf(folder: string): Promise<string> {
  const listing = ['ls-files', '--cached', '--others', '--exclude-standard', '-z'];
  const { stdout } = await execute('git', listing, { cwd: ROOT, maxBuffer: 10_000_000 });
  for (const file of stdout.split('\0').filter((name) => name !== '')) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await cp(join(ROOT, file), join(folder, file)).catch((error) => {
      if (error.code !== 'ENOENT') throw error; // it was removed, but that is not committed
    });
  }
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

async function digestOf(file: string): Promise<string> {
  return createHash('sha512')
    .update(await readFile(file))
    .digest('hex');
}
