import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAMS = fileURLToPath(new URL('programs', import.meta.url));

/** What the program `both-copies.mjs` prints if it succeeds. */
export const ONE_LIBRARY = {
  twoModules: true,
  loaded: true,
  twice: [],
  renamed: [],
  oneService: true,
  busy: [true, true],
  lost: [false, false],
  decorated: 'order',
};

export interface ThrowAwayAppOptions {
  readonly type: 'commonjs' | 'module';
  /**
   * Packages besides the tarball: `['ioredis@5']`. Without a TypeScript among them, this repository's compiles the app.
   */
  readonly packages: readonly string[];
  /** Whether to leave out the library's peers, apart from those in `packages`. */
  readonly withoutPeers?: boolean;
}

/** Builds the library and packs it as it would be published. Returns the path of the tarball in `folder`. */
export async function packLibrary(folder: string): Promise<string> {
  // dist may be out of date, except under `npm test`, which has just built it.
  const dist = join(folder, 'library/dist');
  if (process.env.JUST_BUILT === undefined) await node(ROOT, [join(ROOT, '.ci/build/build.mjs'), dist]);
  else for (const kind of ['esm', 'cjs']) await cp(join(ROOT, 'dist', kind), join(dist, kind), { recursive: true });
  for (const file of ['package.json', 'LICENSE', 'README.md', 'CHANGELOG.md', 'docs']) {
    await cp(join(ROOT, file), join(folder, 'library', file), { recursive: true }).catch((error) => {
      if (error.code !== 'ENOENT') {
        throw error;
      }
    });
  }
  await node(ROOT, [join(ROOT, '.ci/build/manifest.mjs'), 'publish', join(folder, 'library')]);
  const answer = await npm(join(folder, 'library'), [
    'pack',
    '--ignore-scripts',
    '--json',
    '--pack-destination',
    folder,
  ]);
  return join(folder, JSON.parse(answer)[0].filename);
}

/** An app in a temporary folder, with the packed library and packages of the registry installed. */
export class ThrowAwayApp {
  private constructor(
    readonly path: string,
    private readonly compiler: string,
  ) {}

  static async create(tarball: string, options: ThrowAwayAppOptions): Promise<ThrowAwayApp> {
    const folder = await mkdtemp(join(tmpdir(), 'throw-away-app-'));
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'app', private: true, type: options.type }));
    const switches = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline', '--loglevel=error'];
    const peers = options.withoutPeers ? ['--legacy-peer-deps'] : [];
    await npm(folder, ['install', ...switches, ...peers, tarball, ...options.packages]);
    const own = options.packages.some((name) => name.startsWith('typescript@'));
    return new ThrowAwayApp(folder, join(own ? folder : ROOT, 'node_modules/typescript/bin/tsc'));
  }

  /** The version of an installed package. */
  version(name: string): string {
    return this.#require(`${name}/package.json`).version;
  }

  /**
   * Compiles a program of the folder `programs` strictly, checking the library's declarations too, as a user's `tsc`
   * does.
   *
   * @param compiler a `tsc` of this repository, instead of the app's
   */
  async compile(program: string, options: Record<string, unknown>, compiler?: string): Promise<void> {
    await this.add(program);
    await this.compileFiles([program], options, compiler);
  }

  /** Compiles files that are in the app already in the same way. */
  async compileFiles(files: readonly string[], options: Record<string, unknown>, compiler?: string): Promise<void> {
    const compilerOptions = {
      target: 'es2022',
      strict: true,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
      types: ['node'],
      ...options,
    };
    await writeFile(join(this.path, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
    await node(this.path, [compiler === undefined ? this.compiler : join(ROOT, 'node_modules', compiler)]);
  }

  /**
   * Runs a program of the app (copied from `programs`, when it was not compiled) and gives what it printed, as JSON.
   */
  async run(program: string, env: Record<string, string> = {}): Promise<unknown> {
    if (program.endsWith('.mjs')) await this.add(program);
    return JSON.parse(await this.node([program], env));
  }

  /** Runs Node.js in the app, and gives what it printed. */
  node(args: string[], env: Record<string, string> = {}): Promise<string> {
    return node(this.path, args, env);
  }

  /** Copies a file of the folder `programs`, or all files of a folder in it, into the app. */
  async add(program: string): Promise<void> {
    const isFile = program.includes('.');
    await cp(join(PROGRAMS, program), isFile ? join(this.path, program) : this.path, { recursive: true });
  }

  async write(file: string, text: string): Promise<void> {
    await mkdir(dirname(join(this.path, file)), { recursive: true });
    await writeFile(join(this.path, file), text);
  }

  read(file: string): Promise<string> {
    return readFile(join(this.path, file), 'utf8');
  }

  /** Runs the compiled tests with the app's Vitest, and gives how many passed. */
  async vitest(test: string, options: readonly string[] = [], env?: Record<string, string>): Promise<number> {
    const args = ['node_modules/vitest/vitest.mjs', 'run', '--reporter=json', ...options, test];
    return JSON.parse(await node(this.path, args, env)).numPassedTests;
  }

  /** Runs a command that a package has installed, and gives what it printed. */
  command(name: string, args: string[], env: Record<string, string> = {}): Promise<string> {
    return execute(join(this.path, 'node_modules/.bin', name), args, this.path, env);
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }

  get #require(): NodeJS.Require {
    return createRequire(join(this.path, 'package.json'));
  }
}

function node(cwd: string, args: string[], env?: Record<string, string>): Promise<string> {
  return execute(process.execPath, args, cwd, env);
}

function npm(cwd: string, args: string[]): Promise<string> {
  return execute('npm', args, cwd);
}

async function execute(file: string, args: string[], cwd: string, env: Record<string, string> = {}): Promise<string> {
  // What npm and jest set for this process is not meant for the app's.
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS$|NODE_ENV$)/.test(name));
  try {
    const options = { cwd, env: { ...Object.fromEntries(own), ...env }, timeout: 240_000 };
    return (await promisify(execFile)(file, args, options)).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${[file, ...args].join(' ')} failed:\n${stdout ?? ''}${stderr ?? ''}`);
  }
}
