/**
 * `process.nextTick` as it was when this file was loaded. Fake timers replace it, and requests of a test would then never
 * be sent.
 */
export const { nextTick } = process;
