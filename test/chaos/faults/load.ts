import { setTimeout as sleep } from 'node:timers/promises';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { type History, machineTime } from '../history.js';
import { HistoryRecorder } from '../history-recorder.js';

/** Callers that acquire and release one lock, each in a loop. */
export interface Crew {
  readonly name: string;
  readonly type: NonNullable<LockOptions['type']>;
  readonly callers: number;
  /** How long a body runs, in ms. */
  readonly hold: number;
  readonly waitTime?: number;
}

/** Keeps locks of one service busy, and records the results. */
export class Load {
  private running = true;
  private readonly loops: Promise<void>[];
  private readonly recorder: HistoryRecorder;

  constructor(process: string, locks: LockService, crews: readonly Crew[], history: History) {
    this.recorder = new HistoryRecorder(history, process, locks, machineTime);
    this.loops = crews.flatMap((crew) => Array.from({ length: crew.callers }, () => this.loop(crew)));
  }

  /** Starts no new calls, and waits until all calls have been answered. */
  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
  }

  private async loop({ name, type, hold, waitTime }: Crew): Promise<void> {
    const options: LockOptions = waitTime === undefined ? { type } : { type, waitTime };
    while (this.running) {
      let served = false;
      await this.recorder.withLock(name, options, async () => {
        served = true;
        await sleep(hold);
      });
      if (!served) await sleep(20);
    }
  }
}
