// Run by soak-run.ts as a separate process: a NestJS application that uses locks when it is told to, until its input
// ends. Its argument is a SoakSpec as JSON.
import 'reflect-metadata';
import { readdirSync, readlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { createInterface } from 'node:readline';
import { queryObjects, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  currentLease,
  DistributedLock,
  type Lease,
  LockService,
  RedisLockModule,
  type RedisLockOptions,
} from '../../../lib/index.js';
import { FlightLoad, type FlightLoadOptions } from '../flights/flight-load.js';
import { History, type HistoryEvent, machineTime } from '../history.js';
import { type DecoratedJobs, type LoadSettings, SoakLoad } from './soak-load.js';
import type { Leak, Sample, SoakRecord } from './soak-record.js';

export interface SoakSpec {
  readonly process: string;
  readonly options: RedisLockOptions;
  readonly load: LoadSettings;
  readonly flights: FlightLoadOptions;
  readonly leaks: readonly Leak[];
}

type Body = (lease: Lease) => Promise<void>;

@Injectable()
class Jobs implements DecoratedJobs {
  @DistributedLock({ key: 'job:#<args[0]>', waitTime: '3s' })
  async run(_job: number, body: Body): Promise<void> {
    await body(currentLease()!);
  }

  @DistributedLock({ key: 'job:#<args[0]>', onBusy: 'skip' })
  async skip(_job: number, body: Body): Promise<void> {
    await body(currentLease()!);
  }
}

const { process: title, options, load: settings, flights, leaks } = JSON.parse(process.argv[2] ?? '') as SoakSpec;
const quiet = { warn: () => {}, error: () => {} };

@Module({ imports: [RedisLockModule.forRoot({ ...options, logger: quiet })], providers: [Jobs] })
class AppModule {}

type SoakEvent = SoakRecord extends infer R ? (R extends unknown ? Omit<R, 'at' | 'process'> : never) : never;

/** Pipes are written synchronously, so nothing that a killed process has recorded is lost. */
function say(event: SoakEvent, at = machineTime()): void {
  process.stdout.write(`${JSON.stringify({ at, process: title, ...event })}\n`);
}

class HistoryOfSoak extends History {
  override add(name: string, at: number, event: HistoryEvent): void {
    process.stdout.write(`${JSON.stringify({ at, process: name, ...event })}\n`);
  }
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const Timer = setTimeout(() => {}, 0).constructor;

function sample(): Sample {
  // Also collects garbage, and what a finalizer lets go is collected by the next one.
  const timers = queryObjects(Timer as unknown as new () => unknown, { format: 'count' });
  collectGarbage();
  const { heapUsed: heap, external, rss: resident } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  return { heap, external, resident, ...descriptors(), timers, cpu: (user + system) / 1_000 };
}

/** Also those that do not keep the event loop alive, where the system has /proc. */
function descriptors(): Pick<Sample, 'handles' | 'sockets'> {
  try {
    const open = readdirSync('/proc/self/fd').map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return undefined; // the one with which the folder was read
      }
    });
    const targets = open.filter((target) => target !== undefined);
    return { handles: targets.length, sockets: targets.filter((target) => target.startsWith('socket:')).length };
  } catch {
    const resources = process.getActiveResourcesInfo();
    return { handles: resources.length, sockets: resources.filter((name) => name === 'TCPSocketWrap').length };
  }
}

// Everything else on the standard error output is a fault.
process.removeAllListeners('warning').on('warning', (warning) => {
  if (warning.name !== 'ExperimentalWarning') process.stderr.write(`${warning.stack}\n`);
});
process.on('unhandledRejection', (reason) => {
  process.stderr.write(`unhandled rejection: ${String(reason)}\n`);
  process.exit(1);
});
const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const locks = app.get(LockService);
const load = new SoakLoad(title, locks, app.get(Jobs), settings, new HistoryOfSoak());
let flight: FlightLoad | undefined;

const commands: Record<string, (argument: number) => void | Promise<void>> = {
  async prepare(chapter) {
    await load.prepare(chapter);
    say({ kind: 'prepared' });
  },
  go(chapter) {
    load.begin(chapter);
    const seed = flights.seed + 1_000 * chapter;
    flight = new FlightLoad(title, locks, { ...flights, seed }, (at, event) => say({ kind: 'flight', event }, at));
    leak();
  },
  async rest() {
    clearInterval(leaking);
    await Promise.all([load.rest(), flight?.stop()]);
    say({ kind: 'resting' });
  },
  async count() {
    await load.count();
    say({ kind: 'counted' });
  },
  ping: (number) => say({ kind: 'pong', number }),
  sample: () => say({ kind: 'sample', sample: sample() }),
};
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const [command, argument] = line.split(' ');
    void commands[command](Number(argument));
  })
  .once('close', async () => {
    clearInterval(leaking);
    for (const server of lost.handles) server.close();
    await Promise.all([load.rest(), flight?.stop()]);
    await app.close();
  });
say({ kind: 'ready' });

/** What leaks is kept here. */
const lost = { heap: [] as string[][], handles: [] as Server[], keys: 0 };
let leaking: NodeJS.Timeout | undefined;

function leak(): void {
  if (leaks.length === 0) return;
  leaking = setInterval(() => {
    if (leaks.includes('heap'))
      lost.heap.push(Array.from({ length: 1_000 }, (_, n) => `${title} ${n} ${Math.random()}`));
    if (leaks.includes('handles') && Math.random() < 0.2) lost.handles.push(createServer().listen(0, '127.0.0.1'));
    if (leaks.includes('keys')) void locks.acquire(`kept:${++lost.keys}`, { leaseTime: '1h' }).catch(() => {});
    // The owner does not know it, and neither does the history.
    if (leaks.includes('overlap')) void locks.forceRelease('plain:1').catch(() => {});
  }, 200);
}
