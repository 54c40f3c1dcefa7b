import { slotOf } from '../../../lib/backends/redis/hash-slot.js';
import type { TranslatedScripts } from '../../../lib/backends/redis/in-process/in-process-server.js';
import { InProcessTopology } from '../../../lib/backends/redis/in-process/in-process-topology.js';
import { TopologyFactory } from '../../../lib/backends/redis/links/topology.js';
import { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { lockScopes } from '../../../lib/engine/scope/lock-scope.js';
import { RELEASE } from '../../support/release-under-test.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { History } from '../history.js';
import { checkHistory, type Verdict } from '../history-checker.js';
import { Caretaker } from './caretaker.js';
import { Caller } from './errands/caller.js';
import { drawErrand } from './errands/draw-errand.js';
import { POOL, SEATS, SharedObjects } from './errands/shared-objects.js';
import { FAULTS } from './faults.js';
import { KINDS, type KindName, kindOf, type ScheduleKind } from './kinds.js';
import { leftOn } from './left-on-server.js';
import { Member, type Surroundings } from './member.js';
import { Network, type NetworkConditions } from './simulated/network-conditions.js';
import { SimulatedProcess } from './simulated/simulated-process.js';
import { nodeOfSlot, SimulatedServer } from './simulated/simulated-server.js';
import { Stranger } from './simulated/stranger.js';
import { VirtualTime } from './simulated/virtual-time.js';
import type { SimulationTrace } from './simulation-trace.js';

/** Within how many milliseconds after the last fault every caller must be served. */
const LIVENESS_BOUND = 60_000;
/** No lease, no waiter in a queue and no late command lasts longer than this after the faults, in milliseconds. */
const AFTERMATH = 3_000;
/**
 * An idle process has no timer after this time, in milliseconds. The longest is the pause between two lines about locks
 * that could not be released.
 */
const IDLE_WITHIN = 11_000;

const SHORT_LEASES = [300, 1_000] as const;
const LONG_LEASES = [60_000, 120_000] as const;

const WAITER_TIMEOUTS = [200, 600] as const;

/**
 * Within how many milliseconds a caller of several locks must be served in a crowd. This is less than the crowd lasts.
 */
const SEVERAL_WITHIN = 15_000;

/** Connections are replaced within this time, in milliseconds. */
const RECONNECTION = 1_500;

/** How many nodes a cluster has. */
const NODES = 3;

/** How late the timers of a process are at most, in milliseconds. */
const REPORTED_WITHIN = 6;

export interface Outcome {
  readonly seed: number;
  readonly kind: KindName;
  readonly verdict: Verdict;
  readonly history: History;
  /** Events of virtual time. */
  readonly events: number;
}

export interface SimulationOptions extends Pick<Surroundings, 'disguise' | 'disguiseSynchronizers'> {
  readonly kind?: KindName;
  /** Records everything that happens, for the specification. */
  readonly trace?: SimulationTrace;
  /** Other scripts than those of the library. Used to test the tests. */
  readonly scripts?: TranslatedScripts;
}

/**
 * One schedule, determined by one seed: some processes on one server or a cluster, what their callers do, how the network behaves,
 * and which faults occur. In the first act, all of this happens at once. Then the faults end, and all waiting callers
 * must be served. The second act begins when the last effects of the faults have expired. Everything must then work as
 * if there had been no faults.
 */
export class Simulation {
  readonly time = new VirtualTime();
  readonly history: History;
  /** Several: the nodes of a cluster. */
  readonly servers: readonly SimulatedServer[];
  readonly members: Member[] = [];
  readonly kindName: KindName;
  private readonly kind: ScheduleKind;
  private readonly chance: SeededRandom;
  private readonly network: Network;
  private readonly conditions: NetworkConditions;
  private readonly window: number;
  private readonly surroundings: Surroundings;
  private readonly longestStay: number;
  private readonly variety: number;
  private readonly shared: SharedObjects;
  private readonly caretaker: Caretaker | undefined;
  private busy = 0;
  private readonly troubles: string[] = [];

  constructor(
    readonly seed: number,
    private readonly options: SimulationOptions = {},
  ) {
    this.history = options.trace?.history ?? new History();
    this.kindName = options.kind ?? kindOf(seed);
    this.kind = KINDS[this.kindName];
    const chance = new SeededRandom(seed * 7_919 + 17);
    this.chance = chance;
    const slowest = chance.pick([0.2, 2, 8]);
    this.conditions = {
      latency: [chance.pick([0, slowest / 4]), slowest],
      slow: chance.pick([0, 0.02]),
      fates: this.kind.fates,
      unheard: this.kind.unheard,
    };
    this.network = new Network(this.conditions, this.fork());
    // A trace is of a cluster only if its kind is.
    const isCluster = options.trace === undefined && chance.chance(0.15);
    const rates = Array.from({ length: this.kind.scattered || isCluster ? NODES : 1 }, () => this.rate());
    // The specifications know one clock of the servers.
    this.servers = rates.map(
      (rate, index) =>
        new SimulatedServer(this.time, options.trace ? rates[0] : rate, 0, `node-${index + 1}`, options.scripts),
    );
    if (this.kind.flawless || chance.chance(0.5)) for (const server of this.servers) server.learnScripts();
    options.trace?.begin(this.time, this.servers);
    this.window = chance.between(100, 800);
    this.surroundings = {
      time: this.time,
      network: this.network,
      servers: this.servers,
      history: this.history,
      stranger: new Stranger(this.time, this.network, this.server),
      commandTimeout: chance.whole(...(this.kind.commandTimeouts ?? ([60, 200] as const))),
      trace: options.trace,
      trouble: (what) => void this.troubles.push(what),
      disguise: options.disguise,
      disguiseSynchronizers: options.disguiseSynchronizers,
    };
    this.longestStay = chance.pick([2, 20, 60]);
    this.variety = chance.whole(1, 3);
    const mishaps: readonly string[] = [...this.kind.faults, ...this.kind.eitherOf];
    const mortal = mishaps.includes('crash') || mishaps.includes('shutDown');
    this.shared = new SharedObjects(this.fork(), mortal, this.kind.mostPermits);
    if (this.kind.afterwards !== undefined) this.caretaker = new Caretaker(this.shared, mishaps.includes('loseData'));
  }

  /** The only one, or the first node of a cluster. */
  get server(): SimulatedServer {
    return this.servers[0];
  }

  get alive(): readonly Member[] {
    return this.members.filter(({ process }) => !process.dead);
  }

  async run(): Promise<Outcome> {
    const members = this.chance.whole(1, 4);
    for (let i = 0; i < members; i++) this.addMember();
    this.scheduleFaults();
    this.takeCare();
    this.time.at(this.window, () => this.calmDown());
    await this.pass(() => this.time.now >= this.window && this.isDone, this.window + this.livenessBound);
    if (this.busy === 0) await this.secondAct();
    return this.conclude();
  }

  /** Adds a process, with callers that start at once. */
  addMember(): void {
    const { chance, time } = this;
    const process = new SimulatedProcess(
      `p${this.members.length + 1}`,
      time,
      this.fork(),
      this.rate(),
      chance.between(-5_000, 5_000),
    );
    this.options.trace?.joined(process, this.surroundings.commandTimeout);
    const [shortest, longest] = this.kind.leases ?? (this.kind.longLeases ? LONG_LEASES : SHORT_LEASES);
    const release = RELEASE ?? (this.seed % 2 === 0 ? 'background' : 'confirmed');
    const settings = {
      watchdogTimeout: chance.whole(shortest, longest),
      waiterTimeout: chance.whole(...this.waiterTimeouts),
      release,
      library: chance.pick(['ioredis', 'node-redis'] as const),
      keepWhileBlocked: this.kind.keepWhileBlocked,
    };
    const member = new Member(this.surroundings, process, settings);
    this.members.push(member);
    const callers = chance.whole(1, 4);
    for (let i = 0; i < callers; i++) this.send(member, chance.whole(2, 5), this.kind.errands);
  }

  /** From now on, until everything that is under way has arrived, earlier grants prove nothing. */
  upset(
    reason: string,
    duration: number,
    details: { lock?: string; reportedBy?: number; forgetsTokens?: boolean } = {},
  ): void {
    const until = this.time.now + duration;
    this.history.add('server', this.time.now, { kind: 'upset', until, reason, ...details });
  }

  private get waiterTimeouts(): readonly [least: number, most: number] {
    return this.kind.waiterTimeouts ?? WAITER_TIMEOUTS;
  }

  private fork(): SeededRandom {
    return new SeededRandom(Math.floor(this.chance.next() * 2 ** 32));
  }

  private rate(): number {
    return this.kind.drift ? this.chance.between(0.997, 1.003) : 1;
  }

  /** Lets a caller run this many errands, one after another. */
  private send(member: Member, errands: number, weights: ScheduleKind['errands']): void {
    const { process, recorder } = member;
    const chance = this.fork();
    const caller = new Caller(recorder, member.permits, this.shared, process, chance, this.longestStay, this.variety);
    const live = async () => {
      for (let errand = 0; errand < errands && !member.closing; errand++) {
        await process.sleep(chance.between(0, 40));
        await drawErrand(weights, chance)(caller);
      }
    };
    this.busy++;
    let over = false;
    const end = () => {
      if (!over) this.busy--;
      over = true;
    };
    const trouble = (error: Error) => this.troubles.push(`${process.name}: ${error.stack}`);
    lockScopes.run(undefined, () => void live().catch(trouble).then(end));
    process.onCrash(end);
  }

  private scheduleFaults(): void {
    const { faults, mostFaults } = this.kind;
    // One schedule never has both a changed clock and a sleeping machine, because their effects could not be
    // distinguished.
    const choices = [...faults, this.chance.pick(this.kind.eitherOf)].filter((name) => name !== undefined);
    if (choices.length === 0) return;
    const count = this.chance.whole(1, mostFaults);
    for (let i = 0; i < count; i++) {
      const fault = FAULTS[this.chance.pick(choices)];
      this.time.at(this.chance.between(0, this.window), () => {
        const { alive } = this;
        if (alive.length > 0) fault(this, this.chance.pick(alive), this.chance);
      });
    }
  }

  /** No errand is running, and no latch waits for steps. */
  private get isDone(): boolean {
    return this.busy === 0 && (this.shared.settled || this.isDeserted);
  }

  /** Whoever waits for a lock waits until its holder's event loop is no longer blocked. */
  private get livenessBound(): number {
    return LIVENESS_BOUND * (this.kind.keepWhileBlocked === undefined ? 1 : 10);
  }

  private get isDeserted(): boolean {
    return this.alive.every(({ closing }) => closing);
  }

  /** Runs the caretaker for as long as there is something to do. */
  private takeCare(): void {
    const { caretaker } = this;
    const member = this.alive.find(({ closing }) => !closing);
    if (caretaker === undefined || (this.isDone && this.time.now >= this.window)) return;
    member?.process.receive(0, () => caretaker.round(member, this.time.now));
    this.time.after(caretaker.interval, () => this.takeCare());
  }

  private calmDown(): void {
    this.network.calm = true;
  }

  /** Checks that everything works, and that nothing is left behind. */
  private async secondAct(): Promise<void> {
    await this.pass(() => false, this.time.now + AFTERMATH);
    // Connections that were of no use meanwhile may still be silent.
    for (const { cables } of this.alive) for (const cable of cables) cable.resetSilent();
    await this.pass(() => false, this.time.now + RECONNECTION);
    if (this.kind.longLeases) this.lookForAbandonedLocks();
    this.secondActFrom = this.time.now;
    const members = this.alive.filter(({ closing }) => !closing);
    for (const member of members)
      for (let i = 0; i < 2; i++) this.send(member, 1, this.kind.afterwards ?? { hold: 1, hurry: 1, body: 1 });
    this.takeCare();
    await this.pass(() => this.isDone, this.time.now + this.livenessBound);
    await this.pass(() => false, this.time.now + 200);
    if (this.caretaker !== undefined) await this.countPermits();
    this.history.add('server', this.time.now, { kind: 'left', counts: leftOn(this.servers, this.isDeserted) });
    await this.pass(() => false, this.time.now + IDLE_WITHIN);
    for (const member of this.alive) member.recorder.left(member.leftovers);
    for (const member of this.alive) void member.close();
    await this.pass(() => false, this.time.now + 5_000);
    for (const member of this.alive) member.recorder.left({ 'timers after its end': member.process.allTimers });
  }

  /** Checks for locks that have no holder, before any lease could have ended. */
  private lookForAbandonedLocks(): void {
    const { latches, ...counts } = leftOn(this.servers, true);
    this.history.add('server', this.time.now, { kind: 'left', counts });
  }

  private async countPermits(): Promise<void> {
    const runtime = this.members[0].process.unobserved;
    for (const lock of [SEATS, ...(this.kind.errands.pool ? [POOL] : [])]) {
      const { redis } = nodeOfSlot(this.servers, slotOf(lock));
      // All processes have ended before one of them could set it up.
      if (this.isDeserted && !redis.keys.has(lock)) continue;
      const backend = new RedisBackend({
        connection: new TopologyFactory(() => new InProcessTopology(Promise.resolve(redis), runtime)),
        runtime,
        commandTimeout: LIVENESS_BOUND,
        shardedPubSub: 'off',
        minReplicas: 0,
        onError: () => {},
      });
      const { available } = await backend.synchronizers.countPermits(lock);
      this.history.add('server', this.time.now, { kind: 'permits-left', lock, available });
      await backend.close();
    }
  }

  private secondActFrom = Number.POSITIVE_INFINITY;

  private async pass(isOver: () => boolean, limit: number): Promise<void> {
    const over = await this.time.run(isOver, limit);
    if (!over) this.time.now = Math.max(this.time.now, limit);
  }

  private conclude(): Outcome {
    const { latency, slow } = this.conditions;
    // The time for a release, its message, a subscription, two more requests, a script that the server does not know, and
    // the turns of other processes.
    const trip = latency[1] * (slow > 0 ? 10 : 1);
    const servedWithin = 12 * trip + 100;
    const verdict = checkHistory(this.history, {
      permits: this.shared.permits,
      servedWithin,
      lapseNoticed: this.waiterTimeouts[1] / 3,
      severalWithin: this.kind.mostFaults === 0 ? SEVERAL_WITHIN : undefined,
      reportedWithin: this.standsStill ? undefined : REPORTED_WITHIN,
      lossesReportedWithin: REPORTED_WITHIN,
      // At first, processes connect, greet the server and ask for its time.
      servedSince: (this.kind.prompt ?? this.kind.flawless) ? 8 * trip : this.secondActFrom,
      adoptedWithin: this.kind.flawless ? servedWithin : undefined,
    });
    const troubles = [...this.troubles, ...this.flaws()];
    const { seed, kindName: kind, history } = this;
    const events = this.time.count;
    if (troubles.length === 0) return { seed, kind, verdict, history, events };
    const explanation = [troubles.join('\n'), verdict.explanation].filter(Boolean).join('\n\n');
    return { seed, kind, verdict: { ...verdict, sound: false, explanation }, history, events };
  }

  /** Processes are suspended, so that it is not known when they notice something. */
  private get standsStill(): boolean {
    const { faults } = this.kind;
    return faults.includes('stall') || faults.includes('blockLoop');
  }

  /** Records that must not exist in a schedule without faults. */
  private flaws(): string[] {
    if (!this.kind.flawless) return [];
    return this.history.records
      .filter(({ kind, ...record }) => kind === 'lost' || ('outcome' in record && record.outcome !== 'released'))
      .map((record) => `without any fault: ${JSON.stringify(record)}`);
  }
}
