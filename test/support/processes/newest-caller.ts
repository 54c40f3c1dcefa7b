// A separate process whose calls supersede each other. Its argument has the options of its service. For each number that
// it is sent, it makes a call, and sends what became of it: when its body began and ended, or the name of its error.
import { setTimeout as sleep } from 'node:timers/promises';
import { createLockService } from '../../../lib/service/create-lock-service.js';

export type CallMessage = { readonly call: number } & (
  | { readonly began: number }
  | { readonly ended: number }
  | { readonly failed: string }
);

const { name, options } = JSON.parse(process.argv[2]);
const locks = createLockService({ ...options, logger: { warn: () => {}, error: () => {} } });
const send = (message: CallMessage) => process.send?.(message);

process.on('message', (call: number) => {
  const body = async () => {
    send({ call, began: Date.now() });
    await sleep(5);
    send({ call, ended: Date.now() });
  };
  locks.withLock(name, { newest: true }, body).catch((error: Error) => send({ call, failed: error.name }));
});
process.on('disconnect', () => process.exit());
send({ call: -1, began: 0 });
