import type { AcquireReply, AcquireRequest, LockBackend, RenewRequest } from '../../../lib/backends/lock-backend.js';
import { QuorumBackend, type QuorumBackendOptions } from '../../../lib/backends/quorum/quorum-backend.js';
import type { QuorumMember } from '../../../lib/backends/quorum/quorum-member.js';
import { TopologyFactory } from '../../../lib/backends/redis/links/topology.js';
import { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import type { Milliseconds } from '../../../lib/engine/terms/duration.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { HistoryRecorder } from '../../chaos/history-recorder.js';
import { Cable } from '../../chaos/simulation/simulated/cable.js';
import { Network } from '../../chaos/simulation/simulated/network-conditions.js';
import { SimulatedProcess } from '../../chaos/simulation/simulated/simulated-process.js';
import { SimulatedServer } from '../../chaos/simulation/simulated/simulated-server.js';
import { SimulatedTopology } from '../../chaos/simulation/simulated/simulated-topology.js';
import { tracedBackend } from '../../chaos/simulation/simulated/traced-backend.js';
import { VirtualTime } from '../../chaos/simulation/simulated/virtual-time.js';
import { SimulationTrace, type TraceEvent, WatchedHistory } from '../../chaos/simulation/simulation-trace.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { differing } from '../../support/watched/differing.js';

const NODES = 3;
/** The lock that all callers want. */
const NAME = 'stock';
/** Milliseconds. */
const LONGEST_RUN = 30_000;
const AFTERMATH = 5_000;

type FaultName = 'stop' | 'freeze' | 'cut' | 'crash' | 'forget';

interface ScheduleKind {
  readonly fates: ConstructorParameters<typeof Network>[0]['fates'];
  readonly faults: readonly FaultName[];
  readonly mostFaults: number;
}

const UNSTEADY = {
  refused: 0.02,
  lost: 0.04,
  unanswered: 0.04,
  resent: 0.02,
  twice: 0.02,
  late: 0.03,
  overtaken: 0.03,
};

export const QUORUM_KINDS = {
  /** Several processes want the lock at once, on a slow network. */
  contended: { fates: {}, faults: [], mostFaults: 0 },
  /** Commands and answers are lost or late, and nodes stop and start again with their data. */
  unsteady: { fates: UNSTEADY, faults: ['stop', 'freeze', 'cut'], mostFaults: 4 },
  /** Processes die as well. */
  mortal: { fates: UNSTEADY, faults: ['stop', 'cut', 'crash'], mostFaults: 4 },
  /** A node starts without its data. */
  forgetful: { fates: {}, faults: ['forget'], mostFaults: 2 },
} as const satisfies Record<string, ScheduleKind>;

export type QuorumKind = keyof typeof QUORUM_KINDS;

/** What happened to one node, or, without a node, in one process. */
export type QuorumEvent = (
  | (TraceEvent & { readonly node?: number; readonly round?: number | undefined })
  | { readonly kind: 'asks'; readonly process: string; readonly owner: string; readonly leaseTime: number }
  | { readonly kind: 'renews'; readonly owner: string; readonly round: number }
  /** An attempt has found a majority, or none. */
  | { readonly kind: 'succeeds' | 'fails'; readonly owner: string }
) & { readonly at: number };

/** A clock that runs at this rate, and shows this at the beginning. */
export interface NodeClock {
  readonly rate: number;
  readonly ahead: number;
}

interface Member {
  readonly process: SimulatedProcess;
  readonly locks: LockService;
  readonly cables: readonly Cable[];
}

/** Processes that want one lock on several nodes, one caller in each, so that none hands the lock to another. */
export class QuorumSchedule {
  readonly events: QuorumEvent[] = [];
  /** How fast the clock of each process runs. */
  readonly rates = new Map<string, number>();
  readonly clocks: readonly NodeClock[];
  private readonly time = new VirtualTime();
  private readonly history = new WatchedHistory((record) => this.add({ kind: 'record', record }));
  private readonly servers: readonly SimulatedServer[];
  private readonly traces: readonly NodeTrace[];
  private readonly network: Network;
  private readonly members: Member[] = [];
  private readonly kind: ScheduleKind;
  private readonly commandTimeout: number;
  private busy = 0;

  constructor(
    seed: number,
    kind: QuorumKind,
    private readonly chance = new SeededRandom(seed * 7_919 + 23),
  ) {
    this.kind = QUORUM_KINDS[kind];
    const slowest = chance.pick([0.2, 2, 8]);
    const conditions = { latency: [slowest / 4, slowest] as const, slow: 0.02, fates: this.kind.fates, unheard: 0.1 };
    this.network = new Network(conditions, this.fork());
    this.commandTimeout = chance.whole(60, 150);
    this.clocks = Array.from({ length: NODES }, () => ({ rate: this.rate(), ahead: chance.between(0, 200) }));
    this.servers = this.clocks.map(
      ({ rate, ahead }, index) => new SimulatedServer(this.time, rate, ahead, `node-${index + 1}`),
    );
    this.traces = this.servers.map((server, node) => {
      const trace = new NodeTrace((event, round) => this.add({ ...event, node, round }));
      trace.begin(this.time, [server]);
      return trace;
    });
  }

  /** Milliseconds. */
  get now(): number {
    return this.time.now;
  }

  async run(): Promise<void> {
    const { chance, time } = this;
    const processes = chance.whole(2, 3);
    for (let n = 1; n <= processes; n++) this.addProcess(`p${n}`);
    this.scheduleFaults(chance.between(100, 500));
    await time.run(() => this.busy === 0, LONGEST_RUN);
    this.network.calm = true;
    await this.pass(AFTERMATH);
    for (const { process, locks } of this.members) if (!process.dead) void locks.close();
    await this.pass(AFTERMATH);
    for (const trace of this.traces) trace.end();
  }

  private async pass(duration: number): Promise<void> {
    const until = this.time.now + duration;
    await this.time.run(() => false, until);
    this.time.now = until;
  }

  private addProcess(name: string): void {
    const { chance, time, network, commandTimeout } = this;
    const process = new SimulatedProcess(name, time, this.fork(), this.rate(), chance.between(-5_000, 5_000));
    this.rates.set(name, 1 / process.tick);
    const library = chance.pick(['ioredis', 'node-redis'] as const);
    const cables = this.traces.map((trace) => new Cable(time, network, process, commandTimeout, trace));
    const nodes = cables.map((cable, node) => {
      const redis = new RedisBackend({
        connection: new TopologyFactory(() => new SimulatedTopology(cable, [this.servers[node]], library)),
        runtime: process.unobserved,
        commandTimeout,
        shardedPubSub: 'auto',
        minReplicas: 0,
        onError: () => {},
      });
      return ofRounds(tracedBackend(redis, name, this.traces[node]), this.traces[node]);
    });
    const ms = (value: number) => value as Milliseconds;
    const engine = new LockEngine({
      ...ENGINE_DEFAULTS,
      backend: new WatchedQuorum({ nodes, runtime: process, nodeTimeout: commandTimeout }, name, (event) =>
        this.add(event),
      ),
      runtime: process,
      logger: { warn: () => {}, error: () => {} },
      clientId: name,
      keyPrefix: '',
      watchdogTimeout: ms(chance.whole(400, 900)),
      waiterTimeout: ms(400),
      outageTimeout: ms(300),
      shutdownTimeout: ms(500),
    });
    const locks = new LockService(engine);
    this.members.push({ process, locks, cables });
    const recorder = new HistoryRecorder(this.history, name, locks, () => time.now, process.tick);
    void this.live(process, recorder, this.fork());
    process.onCrash(() => {
      recorder.add({ kind: 'crashed' });
      for (const cable of cables) cable.abandon();
    });
  }

  private async live(process: SimulatedProcess, recorder: HistoryRecorder, chance: SeededRandom): Promise<void> {
    let isOver = false;
    const end = () => {
      if (!isOver) this.busy--;
      isOver = true;
    };
    this.busy++;
    process.onCrash(end);
    for (let round = chance.whole(1, 3); round > 0; round--) {
      await process.sleep(chance.between(0, 60));
      const leaseTime = chance.chance(0.3) ? { leaseTime: chance.whole(200, 400) } : {};
      const recorded = await recorder.acquire(NAME, { waitTime: chance.whole(50, 800), ...leaseTime });
      if (recorded === undefined) continue;
      await process.sleep(chance.chance(0.3) ? chance.between(300, 600) : chance.between(0, 40));
      await recorded.release();
    }
    end();
  }

  private scheduleFaults(within: number): void {
    const { chance, time } = this;
    const { faults, mostFaults } = this.kind;
    for (let n = faults.length === 0 ? 0 : chance.whole(1, mostFaults); n > 0; n--) {
      const fault = chance.pick([...faults]);
      time.at(chance.between(0, within), () => this.happens(fault));
    }
  }

  private happens(fault: FaultName): void {
    const { chance, members } = this;
    const server = chance.pick(this.servers);
    if (fault === 'stop') server.restart(chance.between(20, 400), true);
    if (fault === 'forget') server.restart(chance.between(20, 100), false);
    if (fault === 'freeze') server.freeze(chance.between(20, 400));
    const alive = members.filter(({ process }) => !process.dead);
    const { process, cables } = chance.pick(alive);
    if (fault === 'cut') chance.pick(cables).cut(chance.between(20, 600), chance.chance(0.5));
    if (fault === 'crash' && alive.length > 1) process.crash();
  }

  private fork(): SeededRandom {
    return new SeededRandom(Math.floor(this.chance.next() * 2 ** 32));
  }

  private rate(): number {
    return this.chance.between(0.997, 1.003);
  }

  private add(event: QuorumEventWithoutTime): void {
    this.events.push({ ...event, at: this.time.now } as QuorumEvent);
  }
}

type QuorumEventWithoutTime = QuorumEvent extends infer E ? (E extends unknown ? Omit<E, 'at'> : never) : never;

/** What happens to the requests for one node. */
class NodeTrace extends SimulationTrace {
  /** Of the renewals of an owner that are sent now, each to all nodes. */
  round: number | undefined;

  constructor(private readonly added: (event: TraceEvent, round: number | undefined) => void) {
    super();
  }

  protected override add(event: TraceEvent): void {
    this.added(event, this.round);
  }
}

/** Tells the trace of its node to which round a renewal belongs. */
function ofRounds(node: LockBackend, trace: NodeTrace): QuorumMember {
  return differing<QuorumMember>(node as QuorumMember, {
    renew: (request) => {
      trace.round = rounds.get(request);
      try {
        return node.renew(request);
      } finally {
        trace.round = undefined;
      }
    },
  });
}

const rounds = new WeakMap<RenewRequest, number>();

/** Reports what it is asked for, before its first request. */
class WatchedQuorum extends QuorumBackend {
  private round = 0;

  constructor(
    options: QuorumBackendOptions,
    private readonly process: string,
    private readonly report: (event: QuorumEventWithoutTime) => void,
  ) {
    super(options);
  }

  override async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { owner, leaseTime } = request;
    this.report({ kind: 'asks', process: this.process, owner, leaseTime });
    try {
      const reply = await super.acquire(request);
      this.report({ kind: reply.acquired ? 'succeeds' : 'fails', owner });
      return reply;
    } catch (error) {
      this.report({ kind: 'fails', owner });
      throw error;
    }
  }

  override renew(request: RenewRequest): Promise<boolean> {
    rounds.set(request, ++this.round);
    this.report({ kind: 'renews', owner: request.owner, round: this.round });
    return super.renew(request);
  }
}
