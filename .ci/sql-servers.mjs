import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Whether PostgreSQL and MariaDB are both installed in a place where the tests find them. */
export function sqlServersAreHere() {
  return (
    (existsSync('/usr/lib/postgresql') || runs('initdb', '--version')) &&
    (existsSync('/usr/sbin/mariadbd') || runs('mariadbd', '--version'))
  );
}

function runs(command, ...parameters) {
  return spawnSync(command, parameters, { stdio: 'ignore' }).status === 0;
}
