import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import type { ScriptName } from '../../../lib/backends/redis/scripts.js';
import { startRedis } from '../../support/servers/redis-server.js';
import { ScriptMonitor, type UndeclaredKey } from '../../support/servers/script-monitor.js';
import type { Fixture } from './fixture.js';
import { redisFixture } from './redis-fixture.js';

const UNNAMED = /:rwlock_timeout:\d+$|^nestjs_redis_lock_(turns|clock$)|^redisson_lock_token/;
const SCRIPTS = 'lib/backends/redis/scripts';

/**
 * The exceptions of a contract: scripts that read the leases of other readers, whose keys are known only from the
 * lock's hash, and scripts that serve the line of a lock, which most locks do not have.
 */
interface Expected {
  /** The folders of all scripts that the contract runs. */
  readonly folders: readonly string[];
  readonly withUnnamedKeys: readonly ScriptName[];
}

/**
 * A server for a contract, which records the keys that scripts use. Dragonfly and some managed servers refuse a script
 * that uses a key which is not in KEYS.
 *
 *     const watched = new WatchedServer();
 *     describeLockBackend('RedisBackend, one server', watched.open);
 *     watched.describeKeys({ folders: ['lock'], withUnnamedKeys: [] });
 */
export class WatchedServer {
  private monitor!: ScriptMonitor;
  private undeclared: readonly UndeclaredKey[] = [];

  readonly open = async (): Promise<Fixture> => {
    const server = await startRedis();
    this.monitor = await ScriptMonitor.start(server);
    return redisFixture(server.url, async () => {
      try {
        this.undeclared = await this.monitor.undeclaredKeys();
      } finally {
        this.monitor.stop();
        await server.stop();
      }
    });
  };

  /** Must be called after the contract, because its tests check what the contract did. */
  describeKeys({ folders, withUnnamedKeys }: Expected): void {
    describe('the scripts that the contract ran', () => {
      it('were all of their kind', () => {
        const files = folders.flatMap((folder) => readdirSync(`${SCRIPTS}/${folder}`));
        const ran = new Set(this.monitor.runs.map(({ script }) => script));
        expect(files.map((file) => basename(file, '.lua')).filter((name) => !ran.has(name as ScriptName))).toEqual([]);
      });

      it('had a key each', () => {
        expect(this.monitor.runs.filter(({ keys }) => keys.length === 0)).toEqual([]);
      });

      it('named all their keys but the leases of other readers, lines, and what tokens of grants come from', () => {
        expect(this.undeclared.filter(({ key }) => !UNNAMED.test(key))).toEqual([]);
        const scripts = new Set(this.undeclared.map(({ script }) => script));
        expect([...scripts].sort()).toEqual([...withUnnamedKeys].sort());
      });
    });
  }
}
