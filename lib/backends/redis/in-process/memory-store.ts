import { printsAs } from '../../prints-as.js';
import type { Runtime } from '../../runtime.js';
import type { InProcessServer } from './in-process-server.js';

/** The clock of a store, as `TIME` is the clock of a Redis server. */
export type StoreClock = Pick<Runtime, 'monotonic' | 'wall'>;

/**
 * Where memory backends keep their locks: a server inside this process, which runs the same scripts as Redis. Backends
 * that share a store contend with each other, like processes that share a Redis; `new MemoryStore()` is a separate
 * store, whose locks nobody else sees.
 *
 * ```ts
 * const store = new MemoryStore();
 * const backends = [1, 2].map(() => new MemoryBackend({ runtime: nodeRuntime, store }));
 * const [ann, bob] = backends.map((backend) => createLockService({ backend }));
 * ```
 *
 * @publicApi
 */
export class MemoryStore {
  private opened: Promise<InProcessServer> | undefined;

  /**
   * @param clock the clock used to measure leases. Default: the runtime of the first backend. This is correct only if all
   * of them use the same clock.
   */
  constructor(readonly clock?: StoreClock) {}

  /** @internal Its server, once the scripts are loaded. */
  server(clock: StoreClock): Promise<InProcessServer> {
    this.opened ??= open(this.clock ?? clock);
    return this.opened;
  }
}

type ServerModule = Pick<typeof import('./open-server.js'), 'openServer'>;

let loading: Promise<ServerModule> | undefined;

/** Loads the server and its scripts. An application that has a Redis never does. */
export function loadServer(): Promise<ServerModule> {
  loading ??= import('./open-server.js');
  return loading;
}

async function open(clock: StoreClock): Promise<InProcessServer> {
  // A wall clock that is set forward or back changes no lease.
  const start = clock.wall() - clock.monotonic();
  const micros = () => Math.floor((start + clock.monotonic()) * 1_000);
  return (await loadServer()).openServer(micros);
}

const PROCESS_STORE = Symbol.for('nestjs-redis-lock.memory-store.7');

/**
 * The store of this process. Copies of this library that were loaded by `import` and by `require` share it.
 */
export function processStore(): MemoryStore {
  const global = globalThis as { [PROCESS_STORE]?: MemoryStore };
  global[PROCESS_STORE] ??= new MemoryStore();
  return global[PROCESS_STORE];
}

printsAs(MemoryStore, () => ({}));
