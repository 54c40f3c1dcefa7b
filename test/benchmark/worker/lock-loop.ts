import { setTimeout as delay } from 'node:timers/promises';
import type { LockClient } from '../contestants/contestant.js';
import { countOverlaps, type Holdings, sorted } from '../measure/holdings.js';
import { watchEventLoop } from '../measure/loop-delay.js';
import { sharedNow } from '../measure/shared-clock.js';
import { percentile } from '../measure/statistics.js';
import { sent } from './sent-commands.js';

/** Callers that acquire and release over and over. */
export interface LoopJob {
  /** The number of callers of each connection of this process. */
  readonly callers: number;
  readonly key: string;
  /** Whether all want the same key, or a fresh one each time. */
  readonly keys: 'one' | 'fresh';
  /** Milliseconds that each holds the lock; 0: an empty body. */
  readonly body: number;
  /** When to start, on the shared clock. */
  readonly startAt: number;
  /** Milliseconds after which no caller starts again, or `once` each. */
  readonly duration: number | 'once';
  /** Whether the result says when the lock was held. */
  readonly keepHoldings: boolean;
}

export interface LoopResult {
  readonly operations: number;
  /** Milliseconds from the start to the end of the last operation, and until the last release is answered. */
  readonly elapsed: number;
  /** CPU time of this process in µs. */
  readonly cpu: number;
  /** Commands; undefined if they were not counted. */
  readonly sent: number | undefined;
  /** The latency of one operation in µs, from the call of acquire to the end of release, including the body. */
  readonly p50: number;
  readonly p99: number;
  /** Operations of each caller. */
  readonly callers: readonly number[];
  /** How often two callers held one key at the same time. Undefined if no key was shared. */
  readonly overlaps: number | undefined;
  /** How many callers of one connection were served before one that had arrived earlier. */
  readonly outOfOrder: number;
  /** p99 in ms; undefined if there is no event loop. */
  readonly loopDelay: number | undefined;
  readonly holdings: Holdings | undefined;
}

export async function runLoop(clients: readonly LockClient[], job: LoopJob): Promise<LoopResult> {
  const { callers, key, keys, body, startAt, duration, keepHoldings } = job;
  const shared = keys === 'one';
  const latencies: number[] = [];
  const holdings: number[] = [];
  const counts: number[] = [];
  const arrivals: number[][] = clients.map(() => []);
  let fresh = 0;

  async function call(client: LockClient, connection: number, caller: number, index: number): Promise<void> {
    const until = duration === 'once' ? 0 : startAt + duration;
    let asked = sharedNow();
    const hold = async () => {
      const began = shared ? sharedNow() : 0;
      if (body > 0) await delay(body);
      if (shared) holdings.push(began, sharedNow());
    };
    do {
      const name = shared ? key : `${key}:${++fresh}`;
      if (client.hold !== undefined) await client.hold(name, hold);
      else {
        const handle = await client.acquire(name);
        await hold();
        await client.release(handle);
      }
      const ended = sharedNow();
      latencies.push(ended - asked);
      if (duration === 'once') arrivals[connection].push(caller);
      counts[index]++;
      asked = ended;
    } while (asked < until);
  }

  await delay(Math.max(0, startAt - sharedNow()));
  const stopWatching = watchEventLoop();
  const before = { cpu: process.cpuUsage(), sent: sent.commands, time: sharedNow() };
  const running: Promise<void>[] = [];
  for (let caller = 0; caller < callers; caller++) {
    for (const [connection, client] of clients.entries()) {
      running.push(call(client, connection, caller, counts.push(0) - 1));
    }
  }
  await Promise.all(running);
  await Promise.all(clients.map((client) => client.settled?.()));
  const elapsed = sharedNow() - before.time;
  const { user, system } = process.cpuUsage(before.cpu);
  const loopDelay = stopWatching();
  const held = shared ? sorted(Float64Array.from(holdings)) : undefined;
  return {
    operations: latencies.length,
    elapsed,
    cpu: user + system,
    sent: sent.commands - before.sent,
    p50: percentile(latencies, 0.5) * 1e3,
    p99: percentile(latencies, 0.99) * 1e3,
    callers: counts,
    overlaps: held && countOverlaps([held]),
    outOfOrder: arrivals.map(countInversions).reduce((sum, count) => sum + count, 0),
    loopDelay,
    holdings: keepHoldings ? held : undefined,
  };
}

function countInversions(order: readonly number[]): number {
  return order.filter((caller, place) => order.slice(0, place).some((earlier) => earlier > caller)).length;
}
