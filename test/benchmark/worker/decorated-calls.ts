import { attachLockService, createLockService, DistributedLock } from 'nestjs-redis-lock';

class Orders {
  async bare(_id: string): Promise<void> {}

  @DistributedLock('order:#<args[0]>')
  async locked(_id: string): Promise<void> {}
}

export interface Called {
  /** Microseconds per call. */
  readonly time: number;
  /** CPU time per call, in µs. */
  readonly cpu: number;
}

const silent = { warn: () => {}, error: () => {} };

/** A method with and without the decorator, on the memory backend. */
export class DecoratedCalls {
  private readonly orders = attachLockService(new Orders(), createLockService({ backend: 'memory', logger: silent }));

  async call(method: 'bare' | 'locked', calls: number): Promise<Called> {
    const { orders } = this;
    const before = { cpu: process.cpuUsage(), time: performance.now() };
    for (let i = 0; i < calls; i++) await orders[method]('42');
    const time = performance.now() - before.time;
    const { user, system } = process.cpuUsage(before.cpu);
    return { time: (time * 1e3) / calls, cpu: (user + system) / calls };
  }
}
