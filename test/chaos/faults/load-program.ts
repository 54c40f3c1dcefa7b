// Run by load-process.ts, as a process of its own: keeps locks busy until its input ends, then closes and ends by itself.
import { createLockService } from '../../../lib/nest/create-lock-service.js';
import { Load } from './load.js';
import type { LoadSpec } from './load-process.js';

const { process: title, options, crews } = JSON.parse(process.argv[2] ?? '') as LoadSpec;
const logger = { warn: () => {}, error: () => {} };
const locks = createLockService({ ...options, logger });
process.on('unhandledRejection', (reason) => {
  process.stderr.write(`unhandled rejection: ${String(reason)}\n`);
  process.exit(1);
});
// Pipes are written synchronously: what was told is known, also of a process that was killed.
const load = new Load(title, locks, crews, (event) => process.stdout.write(`${JSON.stringify(event)}\n`));
process.stdin.resume().once('end', async () => {
  await load.stop();
  await locks.close();
});
