import type { Contestant } from './contestant.js';

/** Redisson itself, in a JVM: see crew/redisson-crew.ts. */
export const redisson: Contestant = {
  name: 'Redisson (Java)',
  waits: 'listens',
  does: 'watchdog, re-entry; a thread a caller',
};
