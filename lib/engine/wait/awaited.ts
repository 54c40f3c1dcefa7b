import type { WaitingQueue } from './outage-limit.js';

/** What waiting callers wait for. */
export type Awaited = 'an answer' | 'the end of an outage' | 'this process' | 'another process';

/** Callers that wait, and for what. */
export interface AwaitingQueue extends WaitingQueue {
  readonly awaited: Awaited;
}
