import type { Runtime } from '../../../lib/backends/runtime.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';

/** The number of milliseconds after which the log reports a waiting caller, and the shorter time in this runtime. */
const LONG_WAIT = 30_000;
const MOMENT = 4_000;

/** The real runtime, but the warning of a long wait (a timer of exactly 30 s) is due after 4 s. */
export const impatientRuntime: Runtime = {
  ...nodeRuntime,
  timer: (delay, callback, keepAlive) => nodeRuntime.timer(delay === LONG_WAIT ? MOMENT : delay, callback, keepAlive),
};
