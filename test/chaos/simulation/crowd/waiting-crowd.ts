import type { LockService } from '../../../../lib/service/lock-service.js';

/** The world in which a crowd waits: virtual time, or a real server. */
export interface World {
  /** Milliseconds. */
  now(): number;
  sleep(milliseconds: number): Promise<void>;
  /** At least 0 and below 1. */
  random(): number;
  /** The costs up to now. */
  spent(): Promise<Spent>;
}

export interface Spent {
  /** Commands about the lock: attempts to acquire it, releases, tickets. */
  readonly commands: number;
  /** PINGs with which waiting processes make sure that they would still receive the message of a release. */
  readonly pings: number;
  /** The attempts among them; undefined: not counted. */
  readonly attempts: number | undefined;
  /** Messages about releases, one for each process that received it. */
  readonly messages: number;
  /** Milliseconds of the server's work. */
  readonly server: number;
  /** Milliseconds of the processes' work, all of them together. */
  readonly clients: number;
}

export interface CrowdPlan {
  /** For how long each body holds the lock, in milliseconds. */
  readonly hold: number;
  /** How many bodies are measured, after every process has had one, or after as many bodies if callers give up. */
  readonly bodies: number;
  /** Default: nobody gives up. */
  readonly giveUp?: GivingUp;
  /** The lease of the process that dies at the end, in milliseconds. */
  readonly lease: number;
}

/** How callers give up and come back. All times are in milliseconds; each wait and pause is random. */
export interface GivingUp {
  readonly least: number;
  readonly most: number;
  /** The longest pause. */
  readonly pause: number;
}

/** The figures for the bodies between two moments. */
export interface Stretch {
  readonly bodies: number;
  /** Milliseconds from one body to the next. */
  readonly handOver: number;
  /** The costs of each body. */
  readonly each: Spent;
  /** The wait that 99 % of the callers do not exceed, in milliseconds. */
  readonly p99: number;
  /** Jain's fairness index of the numbers of bodies per process. */
  readonly jain: number;
  /** The share of callers who gave up. */
  readonly refused: number;
}

export interface CrowdFigures {
  readonly processes: number;
  /** From the moment when all of them ask until each has had the lock once, or until as many bodies have ended. */
  readonly first: Stretch;
  readonly steady: Stretch;
  /** Milliseconds from the end of the dead process's lease to the next body. */
  readonly recovery: number;
  /** The number of commands from its death until then. */
  readonly recoveryCommands: number;
}

interface Grant {
  readonly caller: number;
  readonly waited: number;
}

interface Mark {
  readonly at: number;
  readonly grants: number;
  readonly refusals: number;
  readonly spent: Spent;
}

const NAME = 'crowd';
const FOR_EVER = Number.POSITIVE_INFINITY;

/** One process for each service, each with one caller that repeatedly acquires the same lock. */
export class WaitingCrowd {
  private readonly grants: Grant[] = [];
  private readonly expected: { readonly isThere: () => boolean; readonly resolve: () => void }[] = [];
  private refusals = 0;
  private inside = 0;
  private stopped = false;

  constructor(
    private readonly services: readonly LockService[],
    private readonly world: World,
    private readonly plan: CrowdPlan,
  ) {}

  /** @param victim the process that dies while it holds the lock */
  async run(victim: LockService): Promise<CrowdFigures> {
    const { services, plan } = this;
    const start = await this.mark();
    const callers = services.map((_, caller) => this.live(caller));
    const waiting = new Set(services.keys());
    await this.until(() => {
      waiting.delete(this.grants.at(-1)!.caller);
      return plan.giveUp === undefined ? waiting.size === 0 : this.grants.length >= services.length;
    });
    const everybody = await this.mark();
    await this.until(() => this.grants.length >= everybody.grants + plan.bodies);
    const end = await this.mark();
    const [recovery, recoveryCommands] = await this.recover(victim);
    this.stopped = true;
    await Promise.all(callers);
    return {
      processes: services.length,
      first: this.stretch(start, everybody),
      steady: this.stretch(everybody, end),
      recovery,
      recoveryCommands,
    };
  }

  private async live(caller: number): Promise<void> {
    const { world, plan } = this;
    const { giveUp } = plan;
    const patience = () =>
      giveUp === undefined ? FOR_EVER : Math.round(giveUp.least + world.random() * (giveUp.most - giveUp.least));
    while (!this.stopped) {
      const asked = world.now();
      const lease = await this.services[caller].tryAcquire(NAME, { waitTime: patience() });
      if (lease === null) {
        this.refusals++;
        await world.sleep(world.random() * (giveUp?.pause ?? 0));
        continue;
      }
      if (++this.inside > 1) throw new Error('two are inside');
      this.grants.push({ caller, waited: world.now() - asked });
      this.look();
      // Callers that still wait at the end get the lock without holding it.
      if (!this.stopped) await world.sleep(plan.hold);
      this.inside--;
      await lease.release();
    }
  }

  /** Acquires a lease that is neither renewed nor released, so that its holder seems dead to the others. */
  private async recover(victim: LockService): Promise<readonly [time: number, commands: number]> {
    const { world, plan, grants } = this;
    await victim.acquire(NAME, { leaseTime: plan.lease });
    const died = await this.mark();
    const over = this.until(() => grants.length > died.grants);
    await over;
    const time = world.now() - died.at - plan.lease;
    return [time, (await world.spent()).commands - died.spent.commands];
  }

  private until(isThere: () => boolean): Promise<void> {
    return new Promise((resolve) => void this.expected.push({ isThere, resolve }));
  }

  private look(): void {
    const [next] = this.expected;
    if (!next?.isThere()) return;
    this.expected.shift();
    next.resolve();
  }

  private async mark(): Promise<Mark> {
    const { world, grants } = this;
    return { at: world.now(), grants: grants.length, refusals: this.refusals, spent: await world.spent() };
  }

  private stretch(from: Mark, to: Mark): Stretch {
    const bodies = to.grants - from.grants;
    const refusals = to.refusals - from.refusals;
    const grants = this.grants.slice(from.grants, to.grants);
    const counts = this.services.map(() => 0);
    for (const { caller } of grants) counts[caller]++;
    const each = (of: (spent: Spent) => number) => (of(to.spent) - of(from.spent)) / bodies;
    const counted = to.spent.attempts !== undefined;
    return {
      bodies,
      handOver: (to.at - from.at) / bodies,
      each: {
        commands: each(({ commands }) => commands),
        pings: each(({ pings }) => pings),
        attempts: counted ? each(({ attempts = 0 }) => attempts) : undefined,
        messages: each(({ messages }) => messages),
        server: each(({ server }) => server),
        clients: each(({ clients }) => clients),
      },
      p99: p99(grants.map(({ waited }) => waited)),
      jain: jain(counts),
      refused: refusals / (refusals + bodies),
    };
  }
}

function p99(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))];
}

function jain(counts: readonly number[]): number {
  const sum = counts.reduce((total, count) => total + count, 0);
  return sum ** 2 / (counts.length * counts.reduce((total, count) => total + count ** 2, 0));
}
