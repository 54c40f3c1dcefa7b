export { LockHealthIndicator, type LockHealthResult } from './health/lock-health.indicator.js';
