import type { ReleaseMode } from '../../lib/engine/terms/lock-options.js';

/**
 * `TEST_RELEASE=background npm run test:chaos`: services of tests that do not choose for themselves release their locks
 * so, and the simulation does in every schedule. Undefined: the default, and in every other schedule.
 */
export const RELEASE = process.env.TEST_RELEASE as ReleaseMode | undefined;
