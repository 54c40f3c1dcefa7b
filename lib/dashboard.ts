// A page that shows who holds and who waits, as a part of a NestJS application.
export { RedisLockDashboardModule } from './dashboard/dashboard.module.js';
export type { RedisLockDashboardOptions } from './dashboard/dashboard.options.js';
