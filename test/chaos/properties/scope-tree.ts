import type { MultiLease } from '../../../lib/engine/terms/lease.js';
import type { RunOptions } from '../../../lib/engine/terms/lock-options.js';
import type { VirtualProcess } from '../../support/lock-world.js';
import { RandomPlay } from './random-play.js';

const NAMES: readonly (readonly string[])[] = [['page'], ['page'], ['cover'], ['cover', 'page']];
/** Without `renew`: if that fails, `holdAtLeast` keeps the lock for its whole lease. */
const COMMANDS = ['acquire', 'acquireAll', 'transfer', 'release', 'removeWaiter'] as const;
/** How many bodies a tree has at most. */
const MOST_BODIES = 16;
/** How long faulty backends may leave a lock taken, in milliseconds. */
const LONGEST_LEASE = 35_000;

/** Code that runs inside locks, and starts other such code, or a lease without such code. */
interface Body {
  readonly id: number;
  readonly process: VirtualProcess;
  /** The bodies in whose scopes it runs. */
  readonly around: readonly Body[];
  readonly names: readonly string[];
  readonly type: 'read' | 'write' | 'reentrant';
}

export interface TreeSettings {
  /** Readers and writers; otherwise re-entrant locks. */
  readonly readWrite: boolean;
  /** Commands and their answers are late or lost, and leases end. */
  readonly faults: boolean;
  /** The clock of the machine is set. */
  readonly jumps: boolean;
}

/**
 * A random tree of bodies, each inside one or two locks, in one or two processes. A body awaits some of those that it
 * starts, and leaves others behind. Bodies that are not inside each other must not be in a lock together, except as
 * readers, and all of them have to end.
 */
export class ScopeTree extends RandomPlay<TreeSettings> {
  private readonly inside = new Map<Body, MultiLease>();
  private bodies = 0;

  grow(): Promise<void> {
    const { chance, processes, runtime, settings } = this;
    return this.play(
      async () => {
        if (settings.faults)
          for (const { backend } of processes) backend.disturb(this.disturbance(0.03, 0.06, 5), ...COMMANDS);
        for (let root = chance.whole(1, 4); root > 0; root--) {
          await runtime.advance(chance.whole(0, 15));
          this.start(chance.pick(processes), []);
        }
      },
      settings.faults ? LONGEST_LEASE : 0,
    );
  }

  private start(process: VirtualProcess, around: readonly Body[]): Promise<void> {
    const body = this.body(process, around);
    const options = this.options(body);
    const holdAtLeast = this.chance.chance(0.2) ? this.chance.whole(1, 120) : 0;
    return this.call(body, { ...options, holdAtLeast }, async () => {
      const { engine } = process.locks;
      const lease = await engine.acquireToRun(body.names, options, 'withLock()');
      await engine.holdWhile(lease, (its) => this.run(body, its), holdAtLeast);
    });
  }

  /** Takes a lease without a body, and releases it later. */
  private keep(process: VirtualProcess, around: readonly Body[]): Promise<void> {
    const body = this.body(process, around);
    const { release, holdAtMost, ...options } = this.options(body);
    return this.call(body, options, async () => {
      const lease = await process.locks.acquire(body.names, options);
      this.enter(body, lease);
      await this.stay(30);
      this.leave(body);
      await lease.release();
    });
  }

  private call(body: Body, options: object, work: () => Promise<void>): Promise<void> {
    const { id, names, around } = body;
    this.note(`${id} in ${around.map((outer) => outer.id)} asks for ${names} (${JSON.stringify(options)})`);
    const call = work().catch((error: Error) => {
      this.leave(body);
      this.count(error.name);
      this.note(`${id} got ${error}`);
    });
    this.calls.push(call);
    return call;
  }

  private body(process: VirtualProcess, around: readonly Body[]): Body {
    const { chance, settings } = this;
    const type = settings.readWrite ? chance.pick(['read', 'write'] as const) : 'reentrant';
    return { id: ++this.bodies, process, around, names: chance.pick(NAMES), type };
  }

  private options({ type, around }: Body): RunOptions {
    const { chance, settings, runtime } = this;
    const release = chance.chance(0.1) ? 'background' : 'confirmed';
    const options: RunOptions = { type, release, holdAtMost: chance.chance(0.1) ? chance.whole(5, 60) : undefined };
    const { faults } = settings;
    // Deadlocks of bodies that have lost their locks are not detected.
    const waitTime = faults && around.length > 0 ? 500 : undefined;
    if (chance.chance(0.3)) return { ...options, waitTime: chance.whole(0, 60) };
    if (chance.chance(0.1)) {
      const controller = new AbortController();
      runtime.timer(chance.whole(0, 60), () => controller.abort());
      return { ...options, waitTime, signal: controller.signal };
    }
    if (faults && chance.chance(0.3)) return { ...options, waitTime, leaseTime: chance.whole(2, 4) * 100 };
    return { ...options, waitTime };
  }

  private async run(body: Body, lease: MultiLease): Promise<void> {
    const { chance } = this;
    this.enter(body, lease);
    try {
      for (let children = chance.whole(0, 3); children > 0; children--) {
        await this.stay(20);
        if (this.settings.jumps && chance.chance(0.08)) this.jump();
        if (this.bodies >= MOST_BODIES) continue;
        const child = this.startIn(body);
        if (chance.chance(0.6)) await child;
      }
      await this.stay(10);
      if (chance.chance(0.1)) throw new Error('the body failed');
      if (chance.chance(0.1)) {
        this.leave(body);
        await lease.release();
        await this.stay(10);
      }
    } finally {
      this.leave(body);
    }
  }

  private jump(): void {
    this.note('the clock is set');
    this.runtime.setWallClock(this.chance.pick([2_000, -2_000]));
  }

  /** Starts another body in this one, sometimes in a scope of another lease as well. */
  private async startIn(body: Body): Promise<void> {
    const { chance, inside } = this;
    const { process } = body;
    const others = [...inside].filter(([other]) => other.process === process);
    if (others.length > 0 && chance.chance(0.2)) {
      const [other, lease] = chance.pick(others);
      // That lease may have been lost.
      return lease.run(() => this.start(process, [body, other])).catch((error) => this.note(`${body.id}: ${error}`));
    }
    return chance.chance(0.1) ? this.keep(process, [body]) : this.start(process, [body]);
  }

  private enter(body: Body, lease: MultiLease): void {
    this.note(`${body.id} is inside`);
    for (const [other, { held }] of this.inside)
      if (held && lease.held && excludes(body, other)) this.complain(`${body.id} is inside beside ${other.id}`);
    this.inside.set(body, lease);
  }

  private leave(body: Body): void {
    if (this.inside.delete(body)) this.note(`${body.id} has left`);
  }

  protected async checkLocks(): Promise<void> {
    const { processes, runtime, settings } = this;
    const type = settings.readWrite ? 'write' : 'reentrant';
    for (const { locks } of processes) {
      const lease = await runtime.until(locks.tryAcquire(['cover', 'page'], { type, waitTime: '3s' }));
      if (lease === null) return this.complain('the locks are not free');
      await runtime.until(lease.release());
    }
  }

  protected async stay(most: number): Promise<void> {
    const { chance, runtime } = this;
    if (chance.chance(0.5)) return;
    await new Promise<void>((resolve) => void runtime.timer(chance.whole(0, most), resolve));
  }
}

function excludes(one: Body, other: Body): boolean {
  if (isAround(one, other) || isAround(other, one)) return false;
  if (one.type === 'read' && other.type === 'read') return false;
  return one.names.some((name) => other.names.includes(name));
}

function isAround(outer: Body, { around }: Body): boolean {
  return around.some((one) => one === outer || isAround(outer, one));
}
