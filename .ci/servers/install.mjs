// The programs that tests start. What is missing is installed with apt-get, on Debian and Ubuntu, as root or with sudo.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/**
 * Returns true if redis-server is on the PATH, after installing it if necessary. Otherwise, prints what to do.
 */
export function provideRedis() {
  if (redisVersion()) return true;
  aptInstall(
    'There is no redis-server on the PATH: installing it with apt-get. To install nothing, stop this with Ctrl+C and put a redis-server 7 or newer on the PATH.',
    'redis-server',
  );
  if (redisVersion()) return true;
  console.error(
    '\nThe tests start redis-server processes of their own, and there is no redis-server on the PATH. Installing it with ' +
      'apt-get was not possible here. Install Redis 7 or newer in a way that puts redis-server on the PATH (Debian and ' +
      'Ubuntu: apt-get install redis-server, Fedora: dnf install redis, macOS: brew install redis), then run the tests ' +
      'again; a running Redis is neither needed nor touched.\n',
  );
  return false;
}

/** For example `Redis server v=7.0.15 …`; `undefined` without redis-server. */
export function redisVersion() {
  const { status, stdout } = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

/** The path of a Chromium: the one of CHROMIUM, or one on the PATH, after installing it if necessary. */
export function provideChromium() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  if (chromium() === undefined) {
    aptInstall('There is no Chromium on the PATH: installing it with apt-get', 'chromium');
  }
  return chromium();
}

/** Returns true if PostgreSQL and MariaDB are here, after installing them and pgbouncer if necessary. */
export function provideSql() {
  // Without pgbouncer, its tests are skipped.
  const hasPgbouncer = has('/usr/sbin/pgbouncer', '--version') || has('pgbouncer', '--version');
  if (!(sqlServersAreHere() && hasPgbouncer)) {
    aptInstall(
      'PostgreSQL, MariaDB or pgbouncer is not here: installing them with apt-get',
      ...['postgresql', 'mariadb-server', 'pgbouncer'],
    );
  }
  if (sqlServersAreHere()) return true;
  console.error(
    '\nThe tests of row locks start servers of PostgreSQL and MariaDB of their own, and not both are here. Installing them ' +
      'with apt-get was not possible. Install PostgreSQL 12 or newer and MariaDB 10.6 or newer (Debian and Ubuntu: apt-get ' +
      'install postgresql mariadb-server), and run the tests again; running servers are neither needed nor touched.\n',
  );
  return false;
}

/** Whether PostgreSQL and MariaDB are both installed in a place where the tests find them. */
function sqlServersAreHere() {
  return (
    (existsSync('/usr/lib/postgresql') || has('initdb', '--version')) &&
    (existsSync('/usr/sbin/mariadbd') || has('mariadbd', '--version'))
  );
}

/** Whether a program is installed, and succeeds with these arguments. */
export function has(program, ...args) {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

/** Ends the script successfully, and prints that nothing was tested. @param lines of up to 77 characters */
export function skip(...lines) {
  const width = 79;
  const text = ['SKIPPED: nothing was tested here.', ...lines];
  const box = [
    `┌${'─'.repeat(width)}┐`,
    ...text.map((line) => `│ ${line.padEnd(width - 2)} │`),
    `└${'─'.repeat(width)}┘`,
  ];
  console.log(`\n${box.join('\n')}\n`);
  process.exit(0);
}

function chromium() {
  return ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
    .map((name) => spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }))
    .filter(({ status }) => status === 0)
    .map(({ stdout }) => stdout.trim())[0];
}

/** @param why printed first; nothing happens where there is no apt-get */
function aptInstall(why, ...packages) {
  if (!has('apt-get', '--version')) return;
  console.log(why);
  aptGet('update'); // one of several sources may be unreachable
  aptGet('install', '-y', '--no-install-recommends', ...packages);
}

function aptGet(...args) {
  // The packages of servers would start them on their usual ports.
  const command = ['env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1', 'apt-get', '-q', ...args];
  const [program, ...rest] = process.getuid() === 0 ? command : ['sudo', '-n', ...command];
  spawnSync(program, rest, { stdio: ['ignore', 'inherit', 'inherit'] });
}
