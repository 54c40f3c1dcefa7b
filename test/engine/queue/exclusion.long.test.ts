import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const PROGRAM = path('../../package/programs/exclusion.mjs');
const LOADER = path('../../support/jest/typescript-loader.mjs');
const LIBRARY = new URL('../../../lib/core.ts', import.meta.url).href;

/** Each list runs in its own process, in which its first entry is the first use of the library. */
const WAYS = [['lock', 'tryLock', 'multiLock'], ['helper'], ['withLock', 'run']];
const ONE_AT_A_TIME = { most: 1, served: 6, locked: false };

/**
 * Callers that Node.js starts in the async context of another caller. A lock that marked the context of its caller
 * would let them in together (see DESIGN, section 3). The program is a plain process, because the first use of the
 * library in a process is one of the cases; to run it on other versions of Node.js, see there.
 */
describe('two callers are never inside at once, and everybody is served', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  }, 60_000);
  afterAll(() => redis?.stop());

  const run = async (...args: string[]): Promise<Record<string, Record<string, unknown>>> => {
    const env = { ...process.env, LIBRARY, REDIS_URL: redis.url, NODE_OPTIONS: '' };
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', LOADER, PROGRAM, ...args], { env });
    return JSON.parse(stdout);
  };

  it.each([
    ['a worker loop that starts jobs', 'workerLoop'],
    ['setInterval', 'setInterval'],
    ["a TCP socket's data listener", 'socket'],
    ["a worker thread's messages", 'workerThread'],
    ['HTTP requests of a connection that is kept, answered before the work is done', 'earlyAnswers'],
    ['HTTP requests of connections that are kept', 'keepAlive'],
    ['the streams of an HTTP/2 session', 'http2'],
    ['an interval that a locked body has started', 'leakedInterval'],
  ])(
    'when they come from %s',
    async (_, source) => {
      const seen = await Promise.all(WAYS.map((ways) => run(ways.join(), source)));
      const expected = WAYS.map((ways) => Object.fromEntries(ways.map((way) => [way, { [source]: ONE_AT_A_TIME }])));
      expect(seen).toEqual(expected);
    },
    120_000,
  );
});
