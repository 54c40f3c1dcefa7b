// Run by flight-process.ts, as a separate process: keeps single flights busy until its input ends, then closes and
// ends.
import { createLockService, type RedisLockOptions } from '../../../lib/core.js';
import { FlightLoad, type FlightLoadOptions } from './flight-load.js';

export interface FlightSpec {
  readonly process: string;
  readonly options: RedisLockOptions;
  readonly load: FlightLoadOptions;
}

const { process: title, options, load: settings } = JSON.parse(process.argv[2] ?? '') as FlightSpec;
const locks = createLockService({ ...options, logger: { warn: () => {}, error: () => {} } });
process.on('unhandledRejection', (reason) => {
  process.stderr.write(`unhandled rejection: ${String(reason)}\n`);
  process.exit(1);
});
// Pipes are written synchronously, so nothing that a killed process has recorded is lost.
const load = new FlightLoad(title, locks, settings, (at, event) => {
  process.stdout.write(`${JSON.stringify({ at, process: title, ...event })}\n`);
});
process.stdin.resume().once('end', async () => {
  await load.stop();
  await locks.close();
});
