export type { LockTestingOptions } from './testing/lock-testing.controller.js';
export { type HeldByAnother, LockTestingController } from './testing/lock-testing.controller.js';
export { getLockTestingToken, LockTestingModule } from './testing/lock-testing.module.js';
export type { TestClock } from './testing/test-clock.js';
