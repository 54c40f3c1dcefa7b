import type { EngineSettings } from '../../lib/engine/services.js';
import { FOREVER, type Milliseconds } from '../../lib/engine/terms/duration.js';

/** What createLockService() passes to an engine by default, for tests that create an engine themselves. */
export const ENGINE_DEFAULTS = {
  keyPrefix: 'lock:',
  waitTime: FOREVER,
  outageTimeout: 10_000 as Milliseconds,
  commandTimeout: 2_000 as Milliseconds,
  release: 'confirmed',
  warnsOfUnlimitedWaits: false,
} satisfies Partial<EngineSettings>;
