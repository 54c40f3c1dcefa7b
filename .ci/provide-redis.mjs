import { spawnSync } from 'node:child_process';

const MANUAL = `The tests start redis-server processes of their own, and there is no redis-server on the PATH. Installing it \
with apt-get was not possible here. Install Redis 7 or newer in a way that puts redis-server on the PATH (Debian and \
Ubuntu: apt-get install redis-server, Fedora: dnf install redis, macOS: brew install redis), then run the tests again; a \
running Redis is neither needed nor touched.`;

/**
 * Returns true if redis-server is on the PATH, after installing it on Debian and Ubuntu if necessary. Otherwise, prints
 * what to do.
 */
export function provideRedis() {
  if (redisVersion()) {
    return true;
  }
  if (runs('apt-get', ['--version'])) {
    console.log(
      'There is no redis-server on the PATH: installing it with apt-get. To install nothing, stop this with Ctrl+C and put a redis-server 7 or newer on the PATH.',
    );
    aptGet('update'); // one of several sources may be unreachable
    aptGet('install', '-y', '--no-install-recommends', 'redis-server');
  }
  if (redisVersion()) {
    return true;
  }
  console.error(`\n${MANUAL}\n`);
  return false;
}

/** For example `Redis server v=7.0.15 …`; `undefined` without redis-server. */
export function redisVersion() {
  const { status, stdout } = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

function aptGet(...args) {
  const command = ['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q', ...args];
  const [program, ...rest] = process.getuid() === 0 ? command : ['sudo', '-n', ...command];
  return runs(program, rest, 'inherit');
}

function runs(program, args, stdio = 'ignore') {
  return spawnSync(program, args, { stdio: ['ignore', stdio, stdio] }).status === 0;
}
