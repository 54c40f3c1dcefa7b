import type { ReleaseMode } from '../../lib/engine/terms/lock-options.js';

/**
 * With `TEST_RELEASE=background npm run suite -- chaos`, services of tests that set no `release` use this one, and so
 * does the simulation in every schedule. Undefined: services use the default, and the simulation uses it in every other
 * schedule.
 */
export const RELEASE = process.env.TEST_RELEASE as ReleaseMode | undefined;
