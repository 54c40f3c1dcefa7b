import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { packLibrary, ThrowAwayApp, type ThrowAwayAppOptions } from '../throw-away-app.js';

/** For what installs packages from the registry, in milliseconds. */
const INSTALL_TIMEOUT = 300_000;

/** An app with the packed library, and a Redis server, while the tests of a `describe` run. */
export class AppWithRedis {
  app!: ThrowAwayApp;
  redis!: RedisServer;
  private folder!: string;

  constructor(options: ThrowAwayAppOptions) {
    beforeAll(() => this.open(options), INSTALL_TIMEOUT);
    afterAll(() => this.close());
  }

  private async open(options: ThrowAwayAppOptions): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), 'packed-'));
    this.app = await ThrowAwayApp.create(await packLibrary(this.folder), options);
    this.redis = await startRedis();
  }

  private async close(): Promise<void> {
    await this.redis?.stop();
    await this.app?.remove();
    await rm(this.folder, { recursive: true, force: true });
  }
}
