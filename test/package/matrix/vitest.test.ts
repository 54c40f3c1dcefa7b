import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packLibrary, ThrowAwayApp } from '../throw-away-app.js';

const INSTALL_TIMEOUT = 300_000;

describe('nestjs-redis-lock/testing in an app with Vitest', () => {
  let folder: string;
  let app: ThrowAwayApp;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'packed-'));
    const nest = ['@nestjs/common@11', '@nestjs/core@11', '@nestjs/testing@11', '@nestjs/platform-express@11'];
    const others = ['ioredis@5', 'reflect-metadata', 'rxjs@7', '@types/node@22', 'typescript@5', 'vitest@4'];
    app = await ThrowAwayApp.create(await packLibrary(folder), { type: 'module', packages: [...nest, ...others] });
  }, INSTALL_TIMEOUT);
  afterAll(async () => {
    await app?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  it('follows its fake timers, and lets its mocks replace the service', async () => {
    // Vitest compiles no decorator metadata, so the app's tsc compiles the tests first.
    await app.compile('vitest.spec.ts', { module: 'nodenext', skipLibCheck: true });
    expect(await app.vitest('vitest.spec.js')).toBe(5);
  });
});
