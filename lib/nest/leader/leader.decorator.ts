import 'reflect-metadata';
import { LockConfigurationError } from '../../engine/errors.js';
import type { Lease } from '../../engine/terms/lease.js';
import { CHECKED_LATER, checkOptions, type OptionTable } from '../../engine/terms/option-table.js';
import { decoratedMethod } from '../decorator/decorate-method.js';
import { declareLockService } from '../lock-service-property.js';

/** Options of `@Leader`. @publicApi */
export interface LeaderOptions {
  /** The name of the lock. It must be the same in all processes that stand for election. */
  readonly name: string;
  /** The `name` of the RedisLockModule whose service is used. Default: the module without a name. */
  readonly service?: string;
}

/** {@link LeaderOptions} that were checked, with the method. */
export interface LeaderMetadata extends LeaderOptions {
  /** `Class.method` */
  readonly where: string;
}

/** A method for `@Leader`. It may take the lease as its argument. @publicApi */
export type LeaderMethod = (lease: Lease) => Promise<unknown>;

const LEADER = Symbol.for('nestjs-redis-lock.leader');
const OPTIONS: OptionTable<LeaderOptions> = { name: CHECKED_LATER, service: CHECKED_LATER };

/**
 * Runs the method in one process at a time, among all that share the Redis. One of them is elected when the
 * applications start. When that process stops, loses the lock or dies, another one is elected.
 *
 * ```ts
 * @Leader('outbox')
 * async relay(lease: Lease) {
 *   while (!lease.signal.aborted) await this.relayNextMessage(lease.signal);
 * }
 * ```
 *
 * The leadership lasts as long as the method's promise. When the method returns or throws, this process resigns, and
 * stands for election again after a pause of 0.5 to 30 seconds. `lease.signal` aborts when the lock was lost, and when
 * the application shuts down (`beforeApplicationShutdown`). Return soon after that. See {@link LockService.lead}.
 *
 * Use it on singleton providers and controllers, not on request-scoped or transient ones. The
 * application does not start without a RedisLockModule.
 *
 * @throws LockConfigurationError when the class is defined, naming class, method and what is wrong
 * @see docs/leaders.md
 * @publicApi
 */
export function Leader(nameOrOptions: string | LeaderOptions) {
  return <M extends LeaderMethod>(
    target: object,
    propertyKey: string | symbol,
    descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    const { where, method } = decoratedMethod('@Leader', target, propertyKey, descriptor);
    const options = typeof nameOrOptions === 'string' ? { name: nameOrOptions } : nameOrOptions;
    check(options, where);
    Reflect.defineMetadata(LEADER, { ...options, where } satisfies LeaderMetadata, method);
    declareLockService(target, options.service);
  };
}

/** The options of `@Leader` on a method, or undefined without `@Leader`. */
export function leaderMetadata(method: unknown): LeaderMetadata | undefined {
  return typeof method === 'function' ? Reflect.getOwnMetadata(LEADER, method) : undefined;
}

function check(options: LeaderOptions, where: string): void {
  if (typeof options !== 'object' || options === null || typeof options.name !== 'string' || options.name === '')
    throw new LockConfigurationError(`${where}: @Leader needs the name of a lock: @Leader('outbox')`);
  checkOptions(options, OPTIONS, `${where}: @Leader`);
}
