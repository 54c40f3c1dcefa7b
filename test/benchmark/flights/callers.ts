// A process of flights.ts. Its arguments are <url> <way> <callers>. For each line `<name> <time>` of its input, all
// callers ask at once for the result of this name, and one JSON line says what became of it.
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createLockService } from '../../../lib/core.js';
import { COMPARE_AND_DELETE } from '../contestants/floor.js';
import { sharedNow } from '../measure/shared-clock.js';
import { countIoredis, sent } from '../worker/sent-commands.js';

/** A way to compute something once for all callers. */
export type Way = 'singleFlight' | 'by hand' | 'by hand, one caller a process';

/** What happened in one process, in milliseconds of the clock that all of them share. */
export interface Report {
  /** When it began to ask. */
  readonly asked: number;
  /** When the last of its callers had the result. */
  readonly last: number;
  /** When its runs of the body ended. */
  readonly ended: readonly number[];
  readonly commands: number;
  /** Milliseconds of CPU time. */
  readonly cpu: number;
}

type Ask = (name: string, body: () => Promise<unknown>) => Promise<unknown>;

const POLL = 50;
const LEASE = 30_000;
const KEPT = 60_000;
/** About a kilobyte. */
const RESULT = { prices: Array.from({ length: 40 }, (_, n) => ({ sku: `article-${n}`, cents: 100 * n })) };

const [url, way, callers] = process.argv.slice(2) as [string, Way, string];
countIoredis();

function bySingleFlight(): Ask {
  const locks = createLockService({ connection: url });
  return (name, body) => locks.singleFlight(name, { keepFor: KEPT }, body as () => Promise<typeof RESULT>);
}

/**
 * As it is written again and again: who finds no result takes a lock by SET NX; the others look again after a while.
 */
function byHand(): Ask {
  const redis = new Redis(url);
  return async (name, body) => {
    const [result, lock] = [`result:${name}`, `lock:${name}`];
    const token = `${process.pid}:${Math.random()}`;
    for (;;) {
      const found = await redis.get(result);
      if (found !== null) return JSON.parse(found);
      if ((await redis.set(lock, token, 'PX', LEASE, 'NX')) === 'OK') {
        const value = (await redis.get(result)) ?? JSON.stringify(await body());
        await redis.set(result, value, 'PX', KEPT);
        await redis.eval(COMPARE_AND_DELETE, 1, lock, token);
        return JSON.parse(value);
      }
      await sleep(POLL);
    }
  };
}

/** The same, with one promise for all callers of a process. */
function byHandTogether(): Ask {
  const ask = byHand();
  const asked = new Map<string, Promise<unknown>>();
  return (name, body) => {
    const known = asked.get(name) ?? ask(name, body).finally(() => asked.delete(name));
    asked.set(name, known);
    return known;
  };
}

const WAYS: Record<Way, () => Ask> = {
  singleFlight: bySingleFlight,
  'by hand': byHand,
  'by hand, one caller a process': byHandTogether,
};

const ask = WAYS[way]();
await ask(`warm up ${process.pid}`, async () => RESULT);

for await (const line of createInterface({ input: process.stdin })) {
  const [name, time] = line.split(' ');
  const ended: number[] = [];
  const body = async () => {
    await sleep(Number(time));
    ended.push(sharedNow());
    return RESULT;
  };
  const [commands, cpu] = [sent.commands, process.cpuUsage()];
  const asked = sharedNow();
  await Promise.all(Array.from({ length: Number(callers) }, () => ask(name, body)));
  const last = sharedNow();
  const { user, system } = process.cpuUsage(cpu);
  const report: Report = { asked, last, ended, commands: sent.commands - commands, cpu: (user + system) / 1_000 };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
process.exit(0);
