import type { Runtime } from '../../../lib/backends/runtime.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';

/** After how many milliseconds the log reports a caller's wait, and after how many here. */
const LONG_WAIT = 30_000;
const MOMENT = 4_000;

/** The real runtime, but what is due after exactly 30 s is due after 4 s: the warning of a long wait. */
export const impatientRuntime: Runtime = {
  ...nodeRuntime,
  timer: (delay, callback, keepAlive) => nodeRuntime.timer(delay === LONG_WAIT ? MOMENT : delay, callback, keepAlive),
};
