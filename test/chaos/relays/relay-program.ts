// Run by relay-run.ts, as a separate process: passes locks on until its input ends, and then closes its service.
import { Redis } from 'ioredis';
import { createLockService, type RedisLockOptions } from '../../../lib/core.js';
import { HistoryPipe } from '../history.js';
import { Relay, type RelayOptions } from './relay.js';

export interface RelaySpec {
  readonly process: string;
  readonly options: RedisLockOptions;
  /** The URL of the job queue. */
  readonly queue: string;
  readonly relay: RelayOptions;
}

const { process: title, options, queue: url, relay: settings } = JSON.parse(process.argv[2] ?? '') as RelaySpec;
const locks = createLockService({ ...options, logger: { warn: () => {}, error: () => {} } });
const queue = new Redis(url);
process.on('unhandledRejection', (reason) => {
  process.stderr.write(`unhandled rejection: ${String(reason)}\n`);
  process.exit(1);
});
const relay = new Relay(title, locks, queue, settings, new HistoryPipe());
process.stdin.resume().once('end', async () => {
  await relay.stop();
  await locks.close();
  queue.disconnect();
});
