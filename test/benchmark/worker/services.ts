import { setTimeout as delay } from 'node:timers/promises';
import type { LockClient } from '../contestants/contestant.js';
import { type Holdings, sorted } from '../measure/holdings.js';
import { sharedNow } from '../measure/shared-clock.js';
import { received, sent } from './sent-commands.js';

/** Services with one caller each. All of them want the same lock, again and again. */
export interface ServicesJob {
  readonly key: string;
  /** Milliseconds that each holds the lock; 0: an empty body. */
  readonly body: number;
  /** The least and the most that a caller waits, in milliseconds. `for ever`: nobody gives up. */
  readonly waits: readonly [least: number, most: number] | 'for ever';
  /** The longest pause after a caller has given up, in milliseconds. */
  readonly pause: number;
  /** When to start, when what happens begins to count, and when it ends, on the shared clock. */
  readonly startAt: number;
  readonly countFrom: number;
  readonly endAt: number;
}

/** What happened while it counted. */
export interface ServicesResult {
  /** Bodies that each service began. */
  readonly bodies: readonly number[];
  /** Callers who gave up. */
  readonly refused: number;
  /** Commands that were sent, and messages that were received. Undefined if they were not counted. */
  readonly sent: number | undefined;
  readonly messages: number | undefined;
  /** CPU time of this process in µs. */
  readonly cpu: number;
  /** From the start, without the time before it counts. */
  readonly holdings: Holdings;
}

export async function runServices(clients: readonly LockClient[], job: ServicesJob): Promise<ServicesResult> {
  const { key, body, waits, pause, startAt, countFrom, endAt } = job;
  const bodies = clients.map(() => 0);
  const holdings: number[] = [];
  let refused = 0;

  async function serve(client: LockClient, service: number): Promise<void> {
    while (sharedNow() < endAt) {
      const handle =
        waits === 'for ever' ? await client.acquire(key) : await client.tryFor!(key, Math.round(between(waits)));
      const now = sharedNow();
      const counts = now >= countFrom && now < endAt;
      if (handle === undefined) {
        if (counts) refused++;
        await delay(between([0, pause]));
        continue;
      }
      if (counts) bodies[service]++;
      // Callers that still wait at the end get the lock without holding it.
      if (body > 0 && now < endAt) await delay(body);
      holdings.push(now, sharedNow());
      await client.release(handle);
    }
  }

  await delay(Math.max(0, startAt - sharedNow()));
  const serving = Promise.all(clients.map(serve));
  await delay(Math.max(0, countFrom - sharedNow()));
  const before = { cpu: process.cpuUsage(), sent: sent.commands, messages: received.messages };
  await delay(Math.max(0, endAt - sharedNow()));
  const { user, system } = process.cpuUsage(before.cpu);
  const result = { sent: sent.commands - before.sent, messages: received.messages - before.messages };
  await serving;
  return { ...result, bodies, refused, cpu: user + system, holdings: sorted(Float64Array.from(holdings)) };
}

function between([least, most]: readonly [least: number, most: number]): number {
  return least + Math.random() * (most - least);
}
