import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../../lib/service/lock-service.js';
import { type LockWorld, openVirtualWorld, openWorld, type StoreName, type VirtualWorld } from '../lock-world.js';

/** Runs scenarios on a real Redis in real time, or in memory in virtual time. */
export interface Stage {
  /** Opens services like those of separate processes. */
  services(count: number): Promise<LockService[]>;
  sleep(time: number): Promise<void>;
  now(): number;
  /** The time between two waits in ms that makes their order certain, even on a busy machine. */
  readonly apart: number;
  play<T>(scenario: () => Promise<T>): Promise<T>;
  /** The number of timers of all services that were opened since the last test. */
  timers(): number;
}

/** A stage for the tests of the surrounding `describe`. */
export function openStage(store: StoreName): Stage & { readonly world: LockWorld | undefined } {
  if (store === 'memory') return new VirtualStage(openVirtualWorld());
  return new RealStage(openWorld(store));
}

class RealStage implements Stage {
  readonly apart = 700;
  private opened: Awaited<ReturnType<LockWorld['process']>>[] = [];

  constructor(readonly world: LockWorld) {}

  async services(count: number): Promise<LockService[]> {
    this.opened = await this.world.processes(count);
    return this.opened.map(({ locks }) => locks);
  }

  sleep = (time: number): Promise<void> => sleep(time);

  now = (): number => performance.now();

  play<T>(scenario: () => Promise<T>): Promise<T> {
    return scenario();
  }

  timers(): number {
    return this.opened.reduce((sum, { runtime }) => sum + runtime.timers, 0);
  }
}

class VirtualStage implements Stage {
  readonly apart = 50;
  readonly world = undefined;

  constructor(private readonly virtual: VirtualWorld) {}

  async services(count: number): Promise<LockService[]> {
    const processes = await Promise.all(Array.from({ length: count }, () => this.virtual.process()));
    return processes.map(({ locks }) => locks);
  }

  sleep = (time: number): Promise<void> =>
    new Promise((resolve) => void this.virtual.runtime.timer(time, resolve, 'keep-alive'));

  now = (): number => this.virtual.runtime.monotonic();

  play<T>(scenario: () => Promise<T>): Promise<T> {
    return this.virtual.runtime.until(scenario());
  }

  timers(): number {
    return this.virtual.runtime.timers;
  }
}
