/**
 * The thread that renews locks while the event loop is blocked (the option `keepWhileBlocked`). The library starts this
 * file. It is an entry so that a bundler can make a file of it; imported elsewhere, it does nothing.
 *
 * @packageDocumentation
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { runStandby } from './standby/thread-side.js';

/** Whether this file runs as that thread. */
export const isStandby: boolean = !isMainThread && workerData?.isStandby === 'nestjs-redis-lock';

if (isStandby && parentPort !== null) runStandby(parentPort);
