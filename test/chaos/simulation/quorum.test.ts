import { QuorumBackend } from '../../../lib/backends/quorum/quorum-backend.js';
import type { QuorumMember } from '../../../lib/backends/quorum/quorum-member.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { type NetworkConditions, UnreliableNode } from './unreliable-node.js';

const SERVICES = 3;
const CALLERS = 3;
const ROUNDS = 5;
const LONG = Number(process.env.CHAOS_LONG ?? 1);

const SLOW_NETWORK = { delay: 20, lost: 0, unanswered: 0, unheard: 0 };
const LOSSY_NETWORK = { delay: 60, lost: 0.05, unanswered: 0.05, unheard: 0.2 };

/** Services that contend for one lock on unreliable nodes, with checks of what must never happen. */
class Simulation {
  readonly runtime: VirtualRuntime;
  readonly stores: MemoryStore[];
  readonly services: LockService[];
  /** The links of each service to each node. */
  readonly links: UnreliableNode[][];
  readonly violations: string[] = [];
  served = 0;
  refused = 0;
  lost = 0;
  private ended = false;
  private readonly inside = new Set<Lease>();
  private lastToken = 0;

  constructor(
    seed: number,
    nodes: number,
    conditions: NetworkConditions,
    private readonly type: 'reentrant' | 'fenced',
  ) {
    const runtime = new VirtualRuntime(seed);
    this.runtime = runtime;
    // The clocks of the nodes differ by up to 0.2 s.
    this.stores = Array.from({ length: nodes }, () => {
      const offset = 200 * runtime.random();
      return new MemoryStore({ monotonic: runtime.monotonic, wall: () => runtime.wall() + offset });
    });
    this.links = [];
    this.services = Array.from({ length: SERVICES }, () => {
      const links = this.stores.map(
        (store) => new UnreliableNode(new MemoryBackend({ runtime, store }), runtime, conditions),
      );
      this.links.push(links);
      return this.service(links);
    });
  }

  /** Settles when all callers have done their rounds. */
  async run(): Promise<void> {
    const callers = this.services.flatMap((service) => Array.from({ length: CALLERS }, () => this.call(service)));
    await this.runtime.until(Promise.all(callers), 3_600_000);
    this.ended = true;
  }

  /** Cuts off one node after the other for a while, from one service or from all; sometimes two nodes at once. */
  async cutNodesOff(): Promise<void> {
    while (!this.ended) {
      const node = Math.floor(this.stores.length * this.runtime.random());
      const service = Math.floor(2 * SERVICES * this.runtime.random());
      const links = service < SERVICES ? [this.links[service][node]] : this.links.map((nodes) => nodes[node]);
      for (const link of links) link.cutOff = true;
      await this.pause(1_500 * this.runtime.random());
      const late = this.pause(500 * this.runtime.random()).then(() => {
        for (const link of links) link.cutOff = false;
      });
      if (this.runtime.random() < 0.5) await late;
    }
  }

  /** The owners for which a node received an acquisition after their release. */
  get reused(): string[] {
    return this.links.flat().flatMap((link) => link.reused);
  }

  /** How many lock fields remain on the nodes. */
  async leftBehind(): Promise<number> {
    const views = this.stores.map((store) => new MemoryBackend({ runtime: this.runtime, store }).inspect('lock:hot'));
    return (await Promise.all(views)).reduce((sum, { owners }) => sum + owners.length, 0);
  }

  pause(time: number): Promise<void> {
    return new Promise((resolve) => void this.runtime.timer(time, resolve));
  }

  private async call(service: LockService): Promise<void> {
    for (let round = 0; round < ROUNDS; round++) {
      await this.pause(100 * this.runtime.random());
      const waitTime = this.runtime.random() < 0.2 ? 300 : undefined;
      const leaseTime = this.runtime.random() < 0.2 ? 2_000 : undefined;
      const lease = await service.acquire('hot', { type: this.type, waitTime, leaseTime }).catch(() => undefined);
      if (lease === undefined) {
        this.refused++;
        continue;
      }
      await this.hold(lease);
    }
  }

  private async hold(lease: Lease): Promise<void> {
    this.enter(lease);
    await this.pause(80 * this.runtime.random());
    this.check();
    this.inside.delete(lease);
    await lease.release().then(
      () => this.served++,
      () => this.lost++,
    );
  }

  private enter(lease: Lease): void {
    this.inside.add(lease);
    this.check();
    if (lease.fencingToken <= this.lastToken)
      this.violations.push(`token ${lease.fencingToken} came after ${this.lastToken}`);
    this.lastToken = lease.fencingToken;
  }

  /** Checks that at most one lease is certain to be held. */
  private check(): void {
    const holders = [...this.inside].filter((lease) => lease.held);
    if (holders.length > 1) this.violations.push(`${holders.map(({ owner }) => owner).join(' and ')} both hold it`);
  }

  private service(links: readonly UnreliableNode[]): LockService {
    const { runtime } = this;
    const nodes = links.map(({ backend }) => backend as QuorumMember);
    return new LockService(
      new LockEngine({
        ...ENGINE_DEFAULTS,
        backend: new QuorumBackend({ nodes, runtime, nodeTimeout: 200 }),
        runtime,
        logger: new RecordingLogger(),
        clientId: runtime.uuid(),
        watchdogTimeout: ms(3_000),
        waiterTimeout: ms(5_000),
        shutdownTimeout: ms(100),
        onLost: 'throw',
      }),
    );
  }
}

describe.each([3, 5])('a quorum of %i nodes', (nodes) => {
  const types = ['reentrant', 'fenced'] as const;
  const seeds = Array.from({ length: Math.ceil(10 * LONG) }, (_, n) => n + 1);

  it.each(types)(
    'serves all callers of a %s lock, one at a time and with growing tokens, on a slow network',
    async (type) => {
      for (const seed of seeds) {
        const simulation = new Simulation(seed, nodes, SLOW_NETWORK, type);
        await simulation.run();
        const { violations, lost, reused } = simulation;
        expect({ seed, violations, lost, reused }).toEqual({ seed, violations: [], lost: 0, reused: [] });
        expect(simulation.served + simulation.refused).toBe(SERVICES * CALLERS * ROUNDS);
        await simulation.runtime.advance(1_000);
        expect({ seed, left: await simulation.leftBehind() }).toEqual({ seed, left: 0 });
      }
    },
  );

  it.each(types)('never gives a %s lock to two owners, nor a lower token, whatever gets lost', async (type) => {
    let served = 0;
    for (const seed of seeds) {
      const simulation = new Simulation(seed, nodes, LOSSY_NETWORK, type);
      await simulation.run();
      served += simulation.served;
      const { violations, reused } = simulation;
      expect({ seed, violations, reused }).toEqual({ seed, violations: [], reused: [] });
    }
    expect(served).toBeGreaterThan(seeds.length * CALLERS);
  });

  it.each(types)('never gives a %s lock to two owners while nodes are cut off and come back', async (type) => {
    for (const seed of seeds) {
      const simulation = new Simulation(seed, nodes, SLOW_NETWORK, type);
      const ran = simulation.run();
      void simulation.cutNodesOff();
      await ran;
      const { violations, reused } = simulation;
      expect({ seed, violations, reused }).toEqual({ seed, violations: [], reused: [] });
    }
  });
});
