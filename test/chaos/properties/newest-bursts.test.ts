import type { LockBackend } from '../../../lib/backends/lock-backend.js';
import { toClientId } from '../../../lib/backends/owner-ids.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { LockSupersededError } from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { ms, openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';

/** How many bursts of 2 to 200 calls are made. NEWEST_BURSTS=100000 npm run suite -- chaos -t 'bursts of calls' */
const BURSTS = Number(process.env.NEWEST_BURSTS ?? 600);
const BURSTS_OF_A_SEED = 12;
const PROCESSES = 5;
/** The longest time that a request takes to the backend, and its answer back, in ms. */
const LATENCY = 4;
/** How often a request is executed a second time, and within how many ms, because its connection broke. */
const COPIED = 0.1;
const LATE = 40;
/** How long it takes until a process that missed a message notices, or a dead process's lease ends. */
const RECOVERY = 20_000;

/** With which probabilities messages are lost, processes die, and requests are executed twice. */
interface Faults {
  readonly seed: number;
  readonly lost: number;
  readonly deaths: number;
  readonly copied: number;
}

interface Call {
  readonly process: Member;
  readonly at: number;
  began: number | undefined;
  ended: 'ran' | 'superseded' | 'died' | Error | undefined;
  superseded: number;
}

/** A process whose requests take time and may be executed twice, whose messages may be lost, and which may die. */
class Member {
  isDead = false;
  running: Call | undefined;
  process!: VirtualProcess;

  constructor(
    private readonly inner: MemoryBackend,
    private readonly runtime: VirtualProcess['runtime'],
    private readonly lossy: number,
    private readonly copied: number,
  ) {}

  get backend(): LockBackend {
    const late = () => new Promise<void>((go) => this.runtime.timer(this.runtime.random() * LATENCY, go));
    const never = new Promise<never>(() => {});
    return new Proxy<LockBackend>(this.inner, {
      get: (inner, property) => {
        if (property === 'line')
          return {
            listen: (...[key, id, listener]: Parameters<NonNullable<LockBackend['line']>['listen']>) =>
              inner.line?.listen(key, id, (wake) => {
                if (!this.isDead && this.runtime.random() >= this.lossy) listener(wake);
              }),
          };
        const value = Reflect.get(inner, property);
        if (typeof value !== 'function') return value;
        if (!['acquire', 'release', 'renew', 'refreshWaiters', 'removeWaiter'].includes(String(property)))
          return value.bind(inner);
        return async (...args: unknown[]) => {
          if (this.isDead) return never;
          await late();
          const reply = await value.apply(inner, args);
          const isCopied = property === 'acquire' && this.runtime.random() < this.copied;
          if (isCopied) this.runtime.timer(this.runtime.random() * LATE, () => void value.apply(inner, args));
          await late();
          if (isCopied) return { ...reply, validUntil: this.runtime.wall() + LATE };
          return this.isDead ? never : reply;
        };
      },
    });
  }
}

describe('bursts of calls of which only the newest waits', () => {
  const world = openVirtualWorld();

  const runs = [0, 0.3].flatMap((lost) =>
    [0, 0.2].flatMap((deaths) => [0, COPIED].map((copied) => ({ lost, deaths, copied }))),
  );
  const seeds = Math.ceil(BURSTS / runs.length / BURSTS_OF_A_SEED);

  it.each(runs)(
    'keep one running and one waiting, and the last one runs: %j',
    async (faults) => {
      for (let seed = 1; seed <= seeds; seed++)
        await play({ ...faults, seed }).catch((cause: Error) => {
          throw new Error(`seed ${seed}: ${cause.message}`, { cause });
        });
    },
    60_000 + BURSTS * 100,
  );

  const play = async ({ seed, lost, deaths, copied }: Faults) => {
    world.renew(seed);
    const { runtime } = world;
    const store = new MemoryStore();
    let born = 0;
    const member = async () => {
      const made = new Member(new MemoryBackend({ runtime, store }), runtime, lost, copied);
      const client = { backend: made.backend, id: toClientId(`process-${++born}`) };
      made.process = await world.process({ client, watchdogTimeout: ms(3_000) });
      return made;
    };
    const members = await Promise.all(Array.from({ length: PROCESSES }, member));
    const random = (limit: number) => Math.floor(runtime.random() * limit);
    const key = members[0].process.locks.engine.keyOf('index');
    const inspector = new MemoryBackend({ runtime, store });

    const call = (of: Member): Call => {
      const made: Call = { process: of, at: runtime.monotonic(), began: undefined, ended: undefined, superseded: 0 };
      const body = async (lease: Lease) => {
        if (of.isDead) return new Promise<void>(() => {});
        made.began = runtime.monotonic();
        made.superseded = lease.superseded;
        expect(members.filter(({ running }) => running !== undefined)).toEqual([]);
        of.running = made;
        await new Promise<void>((go) => runtime.timer(random(30), go));
        if (of.isDead) return new Promise<void>(() => {});
        of.running = undefined;
        return undefined;
      };
      of.process.locks.withLock('index', { newest: true }, body).then(
        () => (made.ended ??= 'ran'),
        (error: Error) => (made.ended ??= error instanceof LockSupersededError ? 'superseded' : error),
      );
      return made;
    };

    const die = async (n: number, calls: readonly Call[]) => {
      const dying = members[n];
      dying.isDead = true;
      dying.running = undefined;
      for (const one of calls) if (one.process === dying) one.ended ??= 'died';
      members[n] = await member();
    };

    for (let burst = 0; burst < BURSTS_OF_A_SEED; burst++) {
      const calls: Call[] = [];
      for (let size = 2 + random(burst % 4 === 0 ? 198 : 20); size > 0; size--) {
        calls.push(call(members[random(PROCESSES)]));
        if (random(3) === 0) await runtime.advance(random(8));
        const { queue } = await inspector.inspect(key);
        expect(queue.length).toBeLessThanOrEqual(1);
        if (runtime.random() >= deaths / 10) continue;
        await die(random(PROCESSES), calls);
      }
      // Calls of one moment have no order: the last one comes a few round trips after the others. A process asks nothing
      // while a late copy may still take the lock.
      await runtime.advance(12 * LATENCY + (copied > 0 ? 6 * LATE : 0));
      const n = random(PROCESSES);
      const last = call(members[n]);
      calls.push(last);
      if (lost === 0) {
        await runtime.advance(8 * LATENCY);
        const waiting = calls.filter(({ began, ended }) => began === undefined && ended === undefined);
        expect(waiting.length).toBeLessThanOrEqual(1);
      }
      if (runtime.random() < deaths / 4) await die(n, calls);
      await runtime.advance(RECOVERY);
      expect(calls.filter(({ ended }) => ended === undefined || ended instanceof Error)).toEqual([]);
      expect(['ran', 'died']).toContain(last.ended);
      const runs = calls.filter(({ ended }) => ended === 'ran');
      for (const { ended, at } of calls)
        if (ended === 'superseded' && last.ended === 'ran')
          expect(runs.some(({ began = 0 }) => began >= at)).toBe(true);
      const counted = runs.reduce((sum, { superseded }) => sum + 1 + superseded, 0);
      expect(counted).toBeLessThanOrEqual(calls.length);
    }
    await inspector.close();
  };
});
