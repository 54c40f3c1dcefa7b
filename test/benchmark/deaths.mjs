// How long a lock stands still after a death, with real processes and a real redis-server. One process holds locks of
// each kind, two others wait for them, and one of the three is killed: the holder; the first waiter, before the release;
// or the first waiter once it was granted the lock and before it knows that.
//   npm run bench -- deaths [--rounds 3] [--locks 10] [--lease 5000]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { CLAIM } from '../../lib/backends/line-backend.ts';
import { startRedis } from '../support/servers/redis-server.ts';
import { sharedNow } from './measure/shared-clock.ts';
import { median } from './measure/statistics.ts';
import { machine } from './report/machine.ts';
import { printed } from './report/table.ts';

const KINDS = {
  plain: {},
  fenced: { type: 'fenced' },
  write: { type: 'write' },
  permits: { permits: 1 },
  fair: { type: 'fair' },
};

/** Milliseconds beyond the time for which the dead process may still be alive. */
const GRACE = 2_000;
/** The default of `fairWaitTimeout`. Redisson gives the first waiter of a fair lock that long to take it. */
const FAIR_WAIT = 5_000;

const library = new URL('../../dist/esm/core.js', import.meta.url).href;

if (process.send !== undefined) await serve();
else await measure();

/** A process that holds or waits for locks, as it is told. */
async function serve() {
  const { createLockService } = await import(library);
  const [url, lease] = process.argv.slice(2);
  const locks = createLockService({ connection: url, watchdogTimeout: Number(lease), waitTime: Infinity });
  const held = [];
  const take = async ([name, kind]) => {
    const lease = await locks.acquire(name, KINDS[kind]);
    process.send({ name, at: sharedNow() });
    held.push(lease);
  };
  process.on('message', ({ what, names }) => {
    if (what === 'take') for (const name of names) take(name).catch(fail);
    if (what === 'release') {
      process.send({ releasedAt: sharedNow() });
      for (const lease of held) lease.release().catch(fail);
    }
  });
  process.send('ready');
}

async function measure() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '3' },
      locks: { type: 'string', default: '10' },
      lease: { type: 'string', default: '5000' },
    },
  });
  const [rounds, perKind, lease] = [values.rounds, values.locks, values.lease].map(Number);
  if (![rounds, perKind, lease].every((value) => Number.isInteger(value) && value > 0))
    throw new Error('--rounds, --locks and --lease are whole numbers above 0');
  const server = await startRedis();
  console.log(`${await machine(server.client())}, load average ${loadavg()[0].toFixed(2)} at the start\n`);
  const cases = {
    'the holder dies': { play: holderDies, limit: () => lease },
    'the first in line dies, then a release': { play: firstDies, limit: claimOf },
    'the first in line dies after its grant': { play: grantedDies, limit: claimOf },
  };
  const rows = [];
  let late = 0;
  for (const [title, { play, limit }] of Object.entries(cases)) {
    const times = new Map(Object.keys(KINDS).map((kind) => [kind, []]));
    for (let round = 0; round < rounds; round++) {
      process.stderr.write(`${title}, round ${round + 1} of ${rounds}\n`);
      const names = Object.keys(KINDS).flatMap((kind) =>
        Array.from({ length: perKind }, (_, n) => [`${kind}:${round}:${n}`, kind]),
      );
      await server.client().flushall();
      for (const [kind, time] of await play(names, server.url, lease)) times.get(kind).push(time);
    }
    for (const [kind, all] of times) {
      const most = limit(kind) + GRACE;
      late += all.filter((time) => time > most).length;
      rows.push([title, kind, String(all.length), ms(median(all)), ms(Math.max(...all)), ms(most)]);
    }
  }
  console.log(
    printed({
      title: `Milliseconds until the next process holds the lock; leases of ${lease} ms, grants of ${CLAIM} ms`,
      columns: ['', 'lock', 'times', 'median', 'longest', 'at most'],
      notes: [],
      rows,
    }),
  );
  console.log(late === 0 ? '\nall in time' : `\n${late} TOO LATE`);
  await server.stop();
  process.exit(late === 0 ? 0 : 1);
}

async function holderDies(names, url, lease) {
  return withCrew(url, lease, names, async ([holder, first]) => {
    const died = sharedNow();
    holder.child.kill('SIGKILL');
    return served(first, names, died);
  });
}

async function firstDies(names, url, lease) {
  return withCrew(url, lease, names, async ([holder, first, second]) => {
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    return served(second, names, await release(holder));
  });
}

async function grantedDies(names, url, lease) {
  return withCrew(url, lease, names, async ([holder, first, second]) => {
    first.child.kill('SIGSTOP');
    const released = await release(holder);
    await sleep(200);
    first.child.kill('SIGKILL');
    return served(second, names, released);
  });
}

/** For how long a dead waiter may be the one that has to take the lock. */
function claimOf(kind) {
  return kind === 'fair' ? FAIR_WAIT : CLAIM;
}

/** A holder of all these locks, and two processes that wait for them in this order. */
async function withCrew(url, lease, names, play) {
  const crew = await Promise.all([0, 1, 2].map(() => start(url, lease)));
  try {
    for (const [position, member] of crew.entries()) {
      member.child.send({ what: 'take', names });
      if (position === 0) while (member.taken.size < names.length) await sleep(10);
      else await sleep(1_000);
    }
    return await play(crew);
  } finally {
    for (const { child } of crew) child.kill('SIGKILL');
  }
}

async function start(url, lease) {
  const child = fork(new URL(import.meta.url), [url, String(lease)]);
  const member = { child, taken: new Map(), releasedAt: undefined };
  child.on('message', (message) => {
    if (message.name !== undefined) member.taken.set(message.name, message.at);
    if (message.releasedAt !== undefined) member.releasedAt = message.releasedAt;
  });
  await once(child, 'message');
  return member;
}

async function release(holder) {
  holder.child.send({ what: 'release' });
  while (holder.releasedAt === undefined) await sleep(1);
  return holder.releasedAt;
}

/** Waits until a process holds all locks. @returns the kind of each, and the milliseconds since then */
async function served({ taken }, names, since) {
  const limit = sharedNow() + 120_000;
  while (taken.size < names.length) {
    if (sharedNow() > limit)
      throw new Error(`only ${taken.size} of ${names.length} locks were acquired in two minutes`);
    await sleep(10);
  }
  return names.map(([name, kind]) => [kind, taken.get(name) - since]);
}

function ms(time) {
  return Math.round(time).toString();
}

function fail(error) {
  console.error(error);
  process.exit(1);
}
