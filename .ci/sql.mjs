// npm run test:sql: row locks on real servers of PostgreSQL and MariaDB, which are installed if they are missing
// (Debian, Ubuntu). Arguments go to jest: npm run test:sql -- -t 'kill'
import { spawnSync } from 'node:child_process';
import { finishWithJest, limitTo, only, step } from './jest-run.mjs';
import { sqlServersAreHere } from './sql-servers.mjs';

const MANUAL = `The tests of row locks start servers of PostgreSQL and MariaDB of their own, and not both are here. Installing them with \
apt-get was not possible. Install PostgreSQL 12 or newer and MariaDB 10.6 or newer (Debian and Ubuntu: apt-get install postgresql \
mariadb-server), and run the tests again; running servers are neither needed nor touched.`;

function runs(command, ...parameters) {
  return spawnSync(command, parameters, { stdio: 'ignore' }).status === 0;
}

function aptGet(...parameters) {
  const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
  // The packages would start servers on their usual ports.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const [command, ...rest] = [...sudo, 'apt-get', ...parameters];
  spawnSync(command, rest, { stdio: ['ignore', 'inherit', 'inherit'], env });
}

// Without pgbouncer its tests are skipped.
const hasPgbouncer = () => runs('/usr/sbin/pgbouncer', '--version') || runs('pgbouncer', '--version');

if (!(sqlServersAreHere() && hasPgbouncer()) && runs('apt-get', '--version')) {
  console.log('PostgreSQL, MariaDB or pgbouncer is not here: installing them with apt-get');
  aptGet('update'); // one of several sources may be unreachable
  aptGet('install', '-y', '--no-install-recommends', 'postgresql', 'mariadb-server', 'pgbouncer');
}
if (!sqlServersAreHere()) {
  console.error(`\n${MANUAL}\n`);
  process.exit(1);
}
limitTo(15);
step('scripts', '.ci/embed.mjs');
finishWithJest(...only('test/sql/'), ...process.argv.slice(2));
