import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packLibrary, ThrowAwayApp } from '../throw-away-app.js';

const INSTALL_TIMEOUT = 300_000;

describe('the packed library under node:test', () => {
  let folder: string;
  let app: ThrowAwayApp;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'packed-'));
    const packages = ['@nestjs/common@11', '@nestjs/core@11', 'reflect-metadata', 'rxjs@7'];
    app = await ThrowAwayApp.create(await packLibrary(folder), { type: 'module', packages });
  }, INSTALL_TIMEOUT);
  afterAll(async () => {
    await app?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  it('follows its timers', async () => {
    await app.add('node-test.mjs');
    expect(await app.node(['--test-reporter=tap', 'node-test.mjs'])).toMatch(/^# pass 5$/m);
  }, 60_000);
});
