import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { type Lease, LockLostError, type LockService } from '../../../lib/core.js';
import type { LockLease } from '../../../lib/engine/lease/lock-lease.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { type History, machineTime } from '../history.js';
import { HistoryRecorder, type RecordedLease, type RecordedTicket } from '../history-recorder.js';

export interface RelayOptions {
  /** Locks that are detached in one process and adopted in another one. */
  readonly parcels: number;
  /** How long a detached lock can be adopted, in milliseconds. */
  readonly detachedFor: number;
  readonly seed: number;
}

/** The lock of the leader. */
export const LEADER = 'leader';

/** The list of the jobs that wait for a worker. Each is a ticket, as JSON. */
const JOBS = 'jobs';

/**
 * The part of one process in two relays: its callers detach locks, its workers adopt those of all processes, as jobs of
 * a queue, and it stands for election. It records the results.
 */
export class Relay {
  private running = true;
  private readonly recorder: HistoryRecorder;
  private readonly random: SeededRandom;
  private readonly loops: Promise<void>[];

  /** @param queue the client of the job queue */
  constructor(
    process: string,
    private readonly locks: LockService,
    private readonly queue: Redis,
    private readonly options: RelayOptions,
    history: History,
  ) {
    this.recorder = new HistoryRecorder(history, process, locks, machineTime);
    this.random = new SeededRandom(options.seed);
    this.loops = [this.handOver(), this.handOver(), this.work(), this.work()];
    this.standForElection();
  }

  /** Starts nothing new, and waits until every call has been answered. */
  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
  }

  /** Acquires and detaches again and again, like requests that leave the rest of their work to a job. */
  private async handOver(): Promise<void> {
    const { random, recorder, options } = this;
    while (this.running) {
      const recorded = await recorder.acquire(`parcel:${random.whole(1, options.parcels)}`, { waitTime: 1_000 });
      if (recorded === undefined) continue;
      await sleep(random.whole(0, 30));
      await this.passOn(recorded);
    }
  }

  /**
   * Adopts again and again. One job in four is done twice, as if its first worker had not reported that it was done.
   */
  private async work(): Promise<void> {
    const { random, recorder, queue } = this;
    while (this.running) {
      const job = await queue.rpop(JOBS);
      if (job === null) {
        await sleep(5);
        continue;
      }
      if (random.chance(0.25)) await queue.lpush(JOBS, job);
      const recorded = await recorder.adopt(JSON.parse(job) as RecordedTicket);
      if (recorded === undefined) continue;
      await sleep(random.whole(0, 20));
      if (random.chance(0.25)) await this.passOn(recorded);
      else await recorded.release();
    }
  }

  private async passOn(recorded: RecordedLease): Promise<void> {
    const ticket = await this.recorder.detach(recorded, this.options.detachedFor);
    if (ticket !== undefined) await this.queue.lpush(JOBS, JSON.stringify(ticket));
  }

  private standForElection(): void {
    let ended = (_outcome: Promise<void>) => {};
    this.locks.lead(LEADER, {
      onElected: async (lease) => {
        const call = this.recorder.sent(LEADER, { waitTime: 0 });
        this.recorder.granted(call, lease as LockLease);
        const released = new Promise<void>((resolve) => {
          ended = resolve;
        });
        void this.recorder.released(call, released);
        await untilAborted(lease);
        this.recorder.releaseAsked(call, lease as LockLease);
        if (lease.signal.reason instanceof LockLostError) ended(Promise.reject(lease.signal.reason));
      },
      onRevoked: () => ended(Promise.resolve()),
    });
  }
}

function untilAborted({ signal }: Lease): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
