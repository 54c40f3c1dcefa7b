import { existsSync } from 'node:fs';
import { freePort } from '../free-port.js';
import { type SqlServer, startSqlServer } from './sql-server.js';

const DEBIAN = '/usr/lib/galera/libgalera_smm.so';

/** Whether this machine has Galera. Otherwise its tests are skipped. Debian installs it with MariaDB. */
export const hasGalera = existsSync(DEBIAN);

/** Two nodes of a Galera cluster, which have the same data. */
export async function startGalera(): Promise<readonly [SqlServer, SqlServer]> {
  const [first, second] = [await freePort(), await freePort()];
  const node = (port: number, others: string) => [
    '--wsrep-on=ON',
    `--wsrep-provider=${DEBIAN}`,
    `--wsrep-cluster-address=gcomm://${others}`,
    '--wsrep-cluster-name=locks',
    '--wsrep-sst-method=rsync',
    `--wsrep-node-address=127.0.0.1:${port}`,
    `--wsrep-provider-options=base_port=${port};gmcast.listen_addr=tcp://127.0.0.1:${port};gcache.size=16M`,
    '--binlog-format=ROW',
    '--innodb-autoinc-lock-mode=2',
  ];
  const one = await startSqlServer('MariaDB', 'fast', node(first, ''));
  const two = await startSqlServer('MariaDB', 'fast', node(second, `127.0.0.1:${first}`));
  return [one, two];
}
