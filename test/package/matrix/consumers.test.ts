import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packLibrary, ThrowAwayApp } from '../throw-away-app.js';

const INSTALL_TIMEOUT = 300_000;

const TYPESCRIPT_5 = undefined; // the app's
const TYPESCRIPT_6 = '@typescript/typescript6/bin/tsc6';
const TYPESCRIPT_7 = 'typescript/bin/tsc';

const nodenext = { module: 'nodenext' };
const SETTINGS: readonly (readonly [title: string, compiler: string | undefined, options: Record<string, unknown>])[] =
  [
    [
      'TypeScript 5, libraries of ES2021',
      TYPESCRIPT_5,
      { target: 'es2021', lib: ['es2021'], module: 'commonjs', moduleResolution: 'node10' },
    ],
    ['TypeScript 7, libraries of ES2021', TYPESCRIPT_7, { target: 'es2021', lib: ['es2021'], ...nodenext }],
    ['TypeScript 5, without esModuleInterop', TYPESCRIPT_5, { module: 'node16', esModuleInterop: false }],
    ['TypeScript 6, nodenext', TYPESCRIPT_6, nodenext],
    [
      'TypeScript 5, exactOptionalPropertyTypes',
      TYPESCRIPT_5,
      { ...nodenext, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
    ],
    ['TypeScript 7, exactOptionalPropertyTypes', TYPESCRIPT_7, { ...nodenext, exactOptionalPropertyTypes: true }],
    [
      'TypeScript 5, isolatedModules and a bundler',
      TYPESCRIPT_5,
      { module: 'es2022', moduleResolution: 'bundler', isolatedModules: true },
    ],
    ['TypeScript 7, verbatimModuleSyntax', TYPESCRIPT_7, { module: 'preserve', verbatimModuleSyntax: true }],
  ];

describe.each([
  { type: 'commonjs', packages: ['@nestjs/common@11', '@nestjs/core@11', 'ioredis@5'] },
  { type: 'module', packages: ['@nestjs/common@12', '@nestjs/core@12', 'ioredis@6'] },
] as const)('types of the packed library in an app of type $type with $packages', ({ type, packages }) => {
  let folder: string;
  let app: ThrowAwayApp;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'packed-'));
    const others = ['reflect-metadata', 'rxjs@7', '@types/node@22', 'typescript@5'];
    app = await ThrowAwayApp.create(await packLibrary(folder), { type, packages: [...packages, ...others] });
  }, INSTALL_TIMEOUT);
  afterAll(async () => {
    await app?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  // NestJS 12 consists of ES modules, which older resolutions do not find.
  const settings = SETTINGS.filter(([, , { module }]) => type === 'commonjs' || module !== 'commonjs');
  it.each(settings)('are right for %s', async (_title, compiler, options) => {
    await app.compile('api.ts', { noEmit: true, skipLibCheck: false, ...options }, compiler);
  });
});
