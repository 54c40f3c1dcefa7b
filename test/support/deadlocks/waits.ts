import { InProcessWaits, WaitStore } from '../../../lib/backends/in-process-waits.js';
import { deadlockOf, type PossibleDeadlock } from '../../../lib/engine/deadlock/confirm-deadlock.js';
import { findCycle, WaitReader } from '../../../lib/engine/deadlock/find-cycle.js';
import { findKnot } from '../../../lib/engine/deadlock/find-knot.js';
import type { FoundWait, JournalRecord } from '../../../lib/engine/deadlock/journal-record.js';
import { VirtualRuntime } from '../runtime/virtual-runtime.js';

/** The owners that a wait waits for: all of them, or so many that fewer than `permits` are left. */
export type Obstacle = readonly number[] | { readonly holders: readonly number[]; readonly permits: number };

/**
 * Waits as processes write them. The caller of wait `n` began to wait at second n, holds by owner `n`, and waits for
 * other owners.
 */
export class Waits {
  readonly runtime = new VirtualRuntime();
  readonly backend = new InProcessWaits(
    new WaitStore(),
    () => this.runtime.monotonic(),
    () => this.runtime.monotonic(),
    async () => [],
  );
  private readonly beats = new Map<number, number>();

  /** @param owner under which it is written */
  async write(n: number, obstacle: Obstacle, id = `wait:${n}`, ends?: number, owner = n): Promise<void> {
    const beat = (this.beats.get(n) ?? 0) + 1;
    this.beats.set(n, beat);
    const record = { ...this.record(n, obstacle), beat, ends };
    const waiting = new Map([[id, JSON.stringify(record)]]);
    await this.backend.write([{ holder: `${owner}`, waiting, ended: [] }], 2_000);
  }

  end(n: number): Promise<void> {
    return this.backend.write([{ holder: `${n}`, waiting: new Map(), ended: [`wait:${n}`] }], 2_000);
  }

  /** The owners of the cycle that is found from wait `n`. */
  async from(n: number, holders: readonly number[]): Promise<readonly string[] | undefined> {
    return (await this.find(n, holders))?.map(({ holder }) => holder);
  }

  find(n: number, holders: readonly number[]): Promise<readonly FoundWait[] | undefined> {
    return findCycle(new WaitReader(this.backend), { id: `wait:${n}`, record: this.record(n, holders) });
  }

  /** The deadlock that is found from wait `n`, with locks that several hold. */
  async deadlockFrom(n: number, obstacle: Obstacle): Promise<PossibleDeadlock | undefined> {
    const reader = new WaitReader(this.backend);
    const start = { id: `wait:${n}`, record: this.record(n, obstacle) };
    const cycle = await findCycle(reader, start);
    return cycle === undefined ? findKnot(reader, start) : deadlockOf(cycle);
  }

  private record(n: number, obstacle: Obstacle): JournalRecord {
    const record = { lock: `lock:${n}`, owner: `${n}`, holders: [], began: 1_000 * n, beat: 1 };
    if (!('permits' in obstacle)) return { ...record, holders: obstacle.map(String) };
    const { holders, permits } = obstacle;
    return { ...record, shared: { holders: holders.map(String), permits } };
  }
}
