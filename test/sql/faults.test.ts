import { setTimeout as sleep } from 'node:timers/promises';
import type { Crew } from '../chaos/faults/load.js';
import { type LoadProcess, startLoad } from '../chaos/faults/load-process.js';
import { LoadReport } from '../chaos/faults/load-report.js';
import { History, machineTime } from '../chaos/history.js';
import { checkHistory } from '../chaos/history-checker.js';
import { startTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.js';
import { SeededRandom } from '../support/seeded-random.js';
import { until } from '../support/until.js';
import { startAgain } from './sessions.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

const LEASE = 2_000;
const ROUNDS = 14;
/** A cut connection frees its locks at once; the process that held them may notice slightly later. */
const NEWS = 1_000;

const CREWS: readonly Crew[] = [
  { name: 'stock', type: 'reentrant', callers: 3, hold: 2 },
  { name: 'ledger', type: 'write', callers: 2, hold: 20 },
  { name: 'report', type: 'reentrant', callers: 1, hold: 700 },
  { name: 'cron', type: 'reentrant', callers: 1, hold: 5, waitTime: 0 },
];

/** A process, with the network between it and the database. */
interface Member {
  readonly load: LoadProcess;
  readonly proxy: TcpProxy;
}

/**
 * Processes contend for the same locks while holders are killed and stopped, connections are cut, and the server is
 * killed.
 */
describe.each(ALL_SQL_LOCKS)('locks in SQL under faults, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  it('never overlap, have growing tokens, and serve or tell every caller', async () => {
    const history = new History();
    const members: Member[] = [];
    const random = new SeededRandom(11);
    let started = 0;
    const start = async (slot: number) => {
      const proxy = await startTcpProxy(world.server.port);
      const rows = { url: world.server.urlAt(proxy.port), createTable: true, connections: 6 };
      const options = { watchdogTimeout: LEASE, shutdownTimeout: 100 };
      const load = startLoad(
        { process: `process ${++started}`, options, crews: CREWS, sql: { ...rows, locks: world.locks } },
        history,
      );
      members[slot] = { load, proxy };
    };
    const report = () => new LoadReport(history, 0);
    const busy = async () => {
      const wanted = report().count('granted') + 20;
      await until(() => report().count('granted') >= wanted, 60_000);
    };
    const faults = [
      async (slot: number) => {
        const { load, proxy } = members[slot];
        await load.kill();
        await proxy.stop();
        await start(slot);
      },
      async (slot: number, round: number) => {
        const { load } = members[slot];
        load.freeze();
        await sleep(round % 2 === 0 ? LEASE + 1_500 : 300);
        load.thaw();
      },
      async (slot: number) => {
        const at = machineTime();
        history.add('network', at, { kind: 'upset', until: at + NEWS, reason: 'connections were cut' });
        members[slot].proxy.disconnect();
        await sleep(NEWS);
      },
    ];
    try {
      for (let slot = 0; slot < 3; slot++) await start(slot);
      for (let round = 0; round < ROUNDS; round++) {
        await busy();
        await sleep(random.next() * 500);
        if (round % 5 === 4) {
          await world.server.kill();
          await startAgain(world.server);
        } else await faults[round % 3](Math.floor(random.next() * members.length), round);
      }
      await busy();
      await Promise.all(members.map(({ load }) => load.stop()));
    } finally {
      for (const { load, proxy } of members) {
        await load.kill();
        await proxy.stop();
      }
    }
    const { explanation } = checkHistory(History.merge(history));
    expect(explanation).toBe('');
    expect(report().count('granted')).toBeGreaterThan(200);
  }, 240_000);
});
