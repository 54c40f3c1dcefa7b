// Run by fleet.ts as a separate process, with this version of the library or an older one. Its callers use the same few
// locks until its input ends.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import type { LockType } from '../../../lib/backends/lock-backend.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { HistoryPipe, machineTime } from '../../chaos/history.js';
import { HistoryRecorder } from '../../chaos/history-recorder.js';
import { enter, leave } from './guard.js';

/** What a process of the fleet does. It is sent as JSON. */
export interface FleetSpec {
  readonly process: string;
  readonly port: number;
  /** The folder of an older version of the library. Undefined: this version. */
  readonly library?: string;
  readonly watchdogTimeout: number;
  readonly callers: readonly FleetCaller[];
}

/** One caller, which acquires a lock in a loop. */
export interface FleetCaller {
  readonly name: string;
  readonly type: LockType;
  /** How long its bodies run, in ms. */
  readonly hold: number;
  /** Default: it waits for as long as it takes. */
  readonly waitTime?: number;
  /** Each body adds one to this counter in Redis, and is guarded by it (see guard.ts). */
  readonly counter?: string;
}

const spec: FleetSpec = JSON.parse(process.argv[2] ?? '');
const { port, library, watchdogTimeout } = spec;
const make: typeof createLockService =
  library === undefined
    ? createLockService
    : (await import(pathToFileURL(join(library, 'esm/core.js')).href)).createLockService;
const url = `redis://127.0.0.1:${port}`;
const redis = new Redis(url);
const locks = make({
  connection: url,
  watchdogTimeout,
  waitTime: Number.POSITIVE_INFINITY,
  logger: { warn: () => {}, error: () => {} },
});
const recorder = new HistoryRecorder(new HistoryPipe(), spec.process, locks, machineTime);
let running = true;

async function call({ name, type, hold, waitTime, counter }: FleetCaller): Promise<void> {
  while (running) {
    const lease = await recorder.acquire(name, waitTime === undefined ? { type } : { type, waitTime });
    if (lease === undefined) continue;
    if (counter !== undefined) await enter(redis, counter, spec.process);
    await sleep(hold);
    if (counter !== undefined) await leave(redis, counter, spec.process);
    await lease.release();
  }
}

const calls = spec.callers.map(call);
process.stdin.resume().once('end', async () => {
  running = false;
  await Promise.all(calls);
  await locks.close();
  redis.disconnect();
});
