import { setTimeout as sleep } from 'node:timers/promises';
import type { LockType } from '../../../lib/backends/lock-backend.js';
import { leftInRedis } from '../../chaos/faults/leftovers.js';
import { History, machineTime } from '../../chaos/history.js';
import { checkHistory } from '../../chaos/history-checker.js';
import { startTcpProxy } from '../../support/network/tcp-proxy.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { until } from '../../support/until.js';
import { RedissonPeer } from '../redisson-peer.js';
import { Fleet, type FleetProcess } from './fleet.js';
import type { FleetCaller } from './fleet-program.js';
import { FleetReport } from './fleet-report.js';
import { takeOverlaps } from './guard.js';
import { CLAIMING, hasOlder, OLDER, olderLibrary } from './older-library.js';

const LEASE = 1_500;
const KINDS = [OLDER, CLAIMING, 'this', 'java'] as const;
type Kind = (typeof KINDS)[number];

/** For every mix, and more rounds of faults: MIX_ROUNDS=3 npm run suite -- interop mixes */
const ROUNDS = Number(process.env.MIX_ROUNDS ?? 1);
const LONG = process.env.MIX_ROUNDS !== undefined;
const SEED = Number(process.env.MIX_SEED ?? 64);
const TYPES: readonly LockType[] = LONG ? ['reentrant', 'fenced', 'fair', 'write'] : ['reentrant', 'fenced'];

/** Every choice of two or more kinds, or all of them. */
const MIXES: readonly (readonly Kind[])[] = LONG
  ? Array.from({ length: 2 ** KINDS.length }, (_, bits) => KINDS.filter((_, i) => bits & (1 << i))).filter(
      ({ length }) => length > 1,
    )
  : [KINDS];

describe('a fleet of several versions, and threads of Java', () => {
  const report = new FleetReport({
    title: `Fleets under faults, seed ${SEED}`,
    columns: ['mix', 'lock', ...KINDS, 'longest pause'],
    notes: [
      'The fewest grants of a process or thread of each kind after the faults, and the longest time',
      'for which nobody was granted the lock then, in ms.',
    ],
  });

  (hasOlder() && hasOlder(CLAIMING) ? it : it.skip).each(MIXES.map((kinds) => [kinds.join(' + '), kinds] as const))(
    'excludes everybody else, and lets everybody in: %s',
    async (mix, kinds) => {
      const { server, redis } = report;
      const random = new SeededRandom(SEED);
      const proxy = await startTcpProxy(server.port);
      const java = kinds.includes('java') ? await RedissonPeer.start(server.port) : undefined;
      const fleet = new Fleet(proxy.port, LEASE);
      const callers = (hold: number): FleetCaller[] =>
        TYPES.map((type) => ({ name: `${type}:${kinds}`, type, hold, counter: `visits:${type}:${kinds}` }));
      const libraryOf = (kind: Kind) => (kind === 'this' ? undefined : olderLibrary(kind));
      const processes = kinds.filter((kind) => kind !== 'java');
      const add = (kind: Kind, n: number) => fleet.add(`${kind}-${n}`, callers(4), libraryOf(kind));
      const threads = java === undefined ? [] : TYPES.map((type) => `java-${type}`);
      const overlapping = async (faulty: readonly FleetProcess[]) => {
        const names = faulty.map(({ spec }) => spec.process);
        return (await Promise.all(callers(0).map(({ counter }) => takeOverlaps(redis, counter!, names)))).flat();
      };
      const members = (type: LockType) => [
        ...fleet.processes.filter(({ killed }) => !killed).map(({ spec }) => spec.process),
        ...threads.filter((thread) => thread === `java-${type}`),
      ];
      const everybody = (since: number, count: number) =>
        callers(0).every(({ name, type }) => {
          const grants = fleet.grants(since, name);
          return members(type).every((one) => (grants.get(one) ?? 0) >= count);
        });
      try {
        for (const kind of processes) for (const n of [1, 2]) add(kind, n);
        if (java !== undefined) for (const caller of callers(2)) fleet.addThread(java, `java-${caller.type}`, caller);
        await until(() => everybody(0, 3), 60_000);
        let started = 2;
        for (let round = 0; round < ROUNDS; round++) {
          const living = fleet.processes.filter(({ killed }) => !killed);
          // Redis and the network stand still for less than a lease: nobody loses a lock.
          server.pause();
          await sleep(random.between(0.2, 0.6) * LEASE);
          server.resume();
          await until(() => everybody(machineTime() - LEASE, 1), 60_000);
          const end = machineTime() + random.between(0.2, 0.6) * LEASE;
          const hold = () => Math.max(0, end - machineTime());
          proxy.holdUp({ requests: hold, replies: hold });
          await until(() => machineTime() > end, 20_000);
          proxy.holdUp();
          expect(await overlapping([])).toEqual([]);
          // One process of each kind is stopped past its lease, and is killed when it is back.
          const faulty = processes.map((kind) =>
            random.pick(living.filter(({ spec }) => spec.process.startsWith(kind))),
          );
          for (const process of faulty) process.freeze();
          await sleep(random.between(1.2, 2) * LEASE);
          for (const process of faulty) process.thaw();
          await sleep(random.between(20, 200));
          for (const process of faulty) await process.kill();
          await sleep(LEASE);
          expect(await overlapping(faulty)).toEqual([]);
          started++;
          for (const kind of processes) add(kind, started);
          await until(() => everybody(0, 1), 60_000);
        }
        const calm = machineTime();
        await until(() => everybody(calm, 20), 60_000).catch((error) => {
          const counts = callers(0).map(({ name }) => [name, [...fleet.grants(calm, name)].join(' ')].join(': '));
          throw new Error(`somebody starves, seed ${SEED}: ${counts.join('; ')}`, { cause: error });
        });
        await fleet.stop();
        const verdict = checkHistory(History.merge(fleet.history));
        if (!verdict.sound) throw new Error(`seed ${SEED}: ${verdict.explanation}`);
        for (const { name, type } of callers(0)) {
          const grants = fleet.grants(calm, name);
          const fewest = (kind: Kind) =>
            kinds.includes(kind)
              ? Math.min(
                  ...members(type)
                    .filter((one) => one.startsWith(kind))
                    .map((one) => grants.get(one) ?? 0),
                ).toFixed()
              : '';
          const times = fleet.waits(name, calm).map(({ at }) => at);
          const pause = Math.max(...times.slice(1).map((at, i) => at - times[i]));
          report.rows.push([mix, type, ...KINDS.map(fewest), pause.toFixed(0)]);
        }
        const counted = await redis.keys('*visits:*');
        if (counted.length > 0) await redis.del(counted);
        expect(await leftInRedis(server)).toEqual([]);
      } finally {
        server.resume();
        await fleet.stop().catch(() => {});
        await java?.stop();
        await proxy.stop();
      }
    },
    240_000 + 60_000 * ROUNDS,
  );
});
