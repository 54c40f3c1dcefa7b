export { getLockTestingToken } from './testing/lock-testing.constants.js';
export { type HeldByAnother, LockTestingController } from './testing/lock-testing.controller.js';
export { LockTestingModule } from './testing/lock-testing.module.js';
export type { LockTestingOptions } from './testing/lock-testing.options.js';
export type { TestClock } from './testing/test-clock.js';
