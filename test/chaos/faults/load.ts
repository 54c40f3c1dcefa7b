import { setTimeout as sleep } from 'node:timers/promises';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { type History, machineTime } from '../history.js';
import { HistoryRecorder } from '../history-recorder.js';

/** Callers that acquire and release one lock, each in a loop. */
export interface Crew {
  readonly name: string;
  /** For so many locks, whose names begin with `name`, there are as many callers each. Default: one lock, `name`. */
  readonly names?: number;
  readonly type?: NonNullable<LockOptions['type']>;
  /** How many may hold the lock. */
  readonly permits?: number;
  readonly callers: number;
  /** How long a body runs, in ms. */
  readonly hold: number;
  readonly waitTime?: number;
  /** How long a caller that was refused waits until it calls again, in ms. Default: 20. */
  readonly rest?: number;
}

/** Keeps locks of one service busy, and records the results. */
export class Load {
  private running = true;
  private readonly loops: Promise<void>[];
  private readonly recorder: HistoryRecorder;

  constructor(process: string, locks: LockService, crews: readonly Crew[], history: History) {
    this.recorder = new HistoryRecorder(history, process, locks, machineTime);
    this.loops = crews.flatMap(({ names, ...crew }) =>
      namesOf(crew.name, names).flatMap((name) =>
        Array.from({ length: crew.callers }, () => this.loop({ ...crew, name })),
      ),
    );
  }

  /** Starts no new calls, and waits until all calls have been answered. */
  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
  }

  private async loop({ name, type, permits, hold, waitTime, rest = 20 }: Crew): Promise<void> {
    const options: LockOptions = waitTime === undefined ? { type, permits } : { type, permits, waitTime };
    while (this.running) {
      let served = false;
      await this.recorder.withLock(name, options, async () => {
        served = true;
        await sleep(hold);
      });
      if (!served) await sleep(rest);
    }
  }
}

function namesOf(name: string, names: number | undefined): string[] {
  return names === undefined ? [name] : Array.from({ length: names }, (_, i) => `${name}:${i}`);
}
