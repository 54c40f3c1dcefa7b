import { LockDeadlockError } from '../../../lib/engine/errors.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { type Plan, permitsOf } from './plans.js';

/** An event of one acquisition. Times are in ms, on a clock that all processes share. */
export type FlowEvent = { readonly time: number; readonly id: string } & (
  | {
      readonly kind: 'wants';
      /** The acquisition around it. */
      readonly parent: string | undefined;
      readonly names: readonly string[];
      readonly type: Plan['type'];
    }
  | { readonly kind: 'got' }
  /** The work under the lock has ended. */
  | { readonly kind: 'ended' }
  | { readonly kind: 'refused'; readonly cycle: readonly string[] }
);

export interface FlowWorld {
  readonly locks: LockService;
  /** The name of the process, for ids. */
  readonly name: string;
  readonly now: () => number;
  readonly sleep: (time: number) => Promise<void>;
  readonly report: (event: FlowEvent) => void;
}

let count = 0;

/**
 * Runs a plan, and waits until all its branches have settled.
 *
 * @throws the error with which an inner acquisition was refused
 */
export async function runPlan(world: FlowWorld, plan: Plan, parent?: string): Promise<void> {
  const { locks, now, sleep, report } = world;
  const { names, type, work, inner, parallel } = plan;
  const id = `${world.name}:${++count}`;
  let isInside = false;
  report({ kind: 'wants', time: now(), id, parent, names, type });
  try {
    const [first, ...others] = names;
    const lock = others.length > 0 ? [...names] : first;
    await locks.withLock(lock, type === 'permits' ? { permits: permitsOf(first) } : { type }, async () => {
      report({ kind: 'got', time: now(), id });
      isInside = true;
      try {
        await sleep(work);
        if (parallel) await all(inner.map((below) => runPlan(world, below, id)));
        else for (const below of inner) await runPlan(world, below, id);
        await sleep(work);
      } finally {
        report({ kind: 'ended', time: now(), id });
      }
    });
  } catch (error) {
    if (!(error instanceof LockDeadlockError)) throw error;
    const cycle = error.cycle.map(({ holds }) => holds);
    if (!isInside) report({ kind: 'refused', time: now(), id, cycle });
    throw error;
  }
}

/** Runs plans one after the other. A deadlock ends only one of them. */
export async function runPlans(world: FlowWorld, plans: readonly Plan[]): Promise<void> {
  for (const plan of plans) {
    try {
      await runPlan(world, plan);
    } catch (error) {
      if (!(error instanceof LockDeadlockError)) throw error;
    }
  }
}

/** Settles when all branches have settled, so that none of them waits when the outer scope ends. */
async function all(branches: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(branches);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
