import type { SynchronizerBackend } from '../../lib/backends/synchronizer-backend.js';
import type { Disturbance, WatchedBackend } from '../support/watched-backend.js';

type Command = Exclude<keyof SynchronizerBackend, 'subscribe'>;

const COMMANDS: readonly Command[] = [
  'takePermits',
  'drainPermits',
  'availablePermits',
  'addPermits',
  'addPermitsIfExists',
  'trySetPermits',
  'takeLeasedPermits',
  'giveLeasedPermits',
  'renewPermits',
  'setPermits',
  'countPermits',
  'trySetCount',
  'countDown',
  'getCount',
  'deleteLatch',
];

/** Counts what a backend is asked about semaphores and latches, and lets things happen to it. */
export class WatchedSynchronizers {
  /** Names of all commands so far. */
  readonly commands: Command[] = [];
  private readonly disturbances = new Map<Command, Disturbance>();

  constructor(backend: WatchedBackend) {
    const synchronizers = backend.synchronizers as unknown as Record<Command, (...args: unknown[]) => Promise<unknown>>;
    for (const command of COMMANDS) {
      const execute = synchronizers[command].bind(synchronizers);
      synchronizers[command] = (...args) => this.run(command, args, () => execute(...args));
    }
  }

  count(command: Command): number {
    return this.commands.filter((name) => name === command).length;
  }

  /** From now on this happens to these commands. */
  disturb(disturbance: Disturbance, ...commands: Command[]): void {
    for (const command of commands) this.disturbances.set(command, disturbance);
  }

  /** All is well again. */
  heal(): void {
    this.disturbances.clear();
  }

  private run(command: Command, args: unknown[], execute: () => Promise<unknown>): Promise<unknown> {
    this.commands.push(command);
    const disturbance = this.disturbances.get(command);
    return disturbance === undefined ? execute() : disturbance(execute, args);
  }
}
