import type { LockOptions } from '../../../../lib/engine/terms/lock-options.js';
import type { SeededRandom } from '../../../support/seeded-random.js';
import type { HistoryRecorder } from '../../history-recorder.js';
import type { PermitRecorder } from '../../permit-recorder.js';
import type { SimulatedProcess } from '../simulated/simulated-process.js';
import type { SharedObjects } from './shared-objects.js';

/** The names of locks by kind. Each name has one type. */
export const NAMES = {
  reentrant: ['stock', 'order', 'parcel'],
  fenced: ['ledger'],
  fair: ['queue'],
  page: ['page'],
} as const;

/** One flow of control in one process, with everything that its errands need. */
export class Caller {
  constructor(
    readonly recorder: HistoryRecorder,
    readonly permits: PermitRecorder,
    readonly shared: SharedObjects,
    readonly process: SimulatedProcess,
    readonly chance: SeededRandom,
    /** The longest time for which it holds a lock, in milliseconds. */
    private readonly longestStay: number,
    /** How many of the names it uses. With fewer names there is more contention. */
    private readonly variety: number,
  ) {}

  /** Takes a random time: none, some promises, or a pause. */
  async stay(): Promise<void> {
    const kind = this.chance.next();
    if (kind < 0.2) return;
    if (kind < 0.35) {
      for (let i = 0; i < 3; i++) await null;
      return;
    }
    await this.process.sleep(this.chance.between(0, this.longestStay) * (kind < 0.9 ? 0.3 : 1));
  }

  /** The name of a lock of this kind. */
  name(kind: keyof typeof NAMES = 'reentrant'): string {
    const names = NAMES[kind];
    return names[this.chance.whole(0, Math.min(this.variety, names.length) - 1)];
  }

  /** A lock of any type. */
  any(): { readonly name: string; readonly type: NonNullable<LockOptions['type']> } {
    const type = this.chance.pick(['reentrant', 'reentrant', 'fenced', 'fair', 'read', 'write'] as const);
    return { type, name: this.name(type === 'read' || type === 'write' ? 'page' : type) };
  }
}
