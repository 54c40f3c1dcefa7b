export * from './core.js';
export { DistributedLock, type LockDecorator } from './nest/decorator/distributed-lock.decorator.js';
export type {
  BusyAnswer,
  DistributedLockOptions,
  KeyFunction,
  LockKey,
  PermitsFunction,
  ReturnKind,
  SignalFunction,
} from './nest/decorator/distributed-lock.options.js';
export {
  type FlightDecorator,
  type FlightKey,
  SingleFlight,
  type SingleFlightOptions,
} from './nest/decorator/single-flight.decorator.js';
export { InjectLockService } from './nest/inject-lock-service.decorator.js';
export { Leader, type LeaderMethod, type LeaderOptions } from './nest/leader/leader.decorator.js';
export { LockExceptionFilter, type LockExceptionFilterOptions } from './nest/lock-exception.filter.js';
export { attachLockService } from './nest/lock-service-property.js';
export { getLockServiceToken } from './nest/redis-lock.constants.js';
export { RedisLockModule } from './nest/redis-lock.module.js';
export type {
  RedisLockAsyncOptions,
  RedisLockFactoryOptions,
  RedisLockOptionsFactory,
} from './nest/redis-lock-async.options.js';
