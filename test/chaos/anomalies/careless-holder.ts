// A process that reads a register under a lock and writes back the value plus one, whether or not its lease was lost
// meanwhile. Its arguments are <url> <watchdogTimeout>. It asks the test for the read and the write, on stdout and
// stdin.
import { createInterface } from 'node:readline';
import { createLockService } from '../../../lib/service/create-lock-service.js';

const [url, watchdogTimeout] = process.argv.slice(2);
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (question: Question): Promise<unknown> => {
  process.stdout.write(`${JSON.stringify(question)}\n`);
  return JSON.parse((await answers.next()).value);
};

export type Question =
  | { readonly ask: 'read'; readonly token: number }
  | { readonly ask: 'write'; readonly token: number; readonly value: number }
  | { readonly ask: 'bye'; readonly lost: boolean };

const locks = createLockService({
  connection: url,
  watchdogTimeout: Number(watchdogTimeout),
  logger: { warn: () => {}, error: () => {} },
});
const lease = await locks.acquire('stock');
const token = lease.fencingToken;
const value = (await ask({ ask: 'read', token })) as number;
await ask({ ask: 'write', token, value: value + 1 });
const lost = await lease.release().then(
  () => false,
  () => true,
);
await ask({ ask: 'bye', lost });
await locks.close();
process.exit();
