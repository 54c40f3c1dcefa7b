// A process with one build of the library, and no other locking code. crew/node-crew.ts gives it its tasks.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockClient } from '../contestants/contestant.js';
import { runLoop } from '../worker/lock-loop.js';
import { countIoredis } from '../worker/sent-commands.js';
import { serve } from '../worker/serve.js';
import { libraryNamed } from './library-at.js';

const clients: LockClient[] = [];

// AsyncLocalStorage is switched on, as in every application that has used withLock() or a decorated method once. It
// makes each promise more expensive (Node.js 20 and 22), and versions of the library differ in when they switch it on.
// There is only one instance, which each version finds under its own name, because every further instance costs the
// same again. The first scope comes after the imports, as in an application. Otherwise, V8 would optimize Node.js'
// promise hooks for the promises of the module loader. With BENCH_SCOPES=off, the libraries switch it on themselves.
let enterScope = () => {};
if (process.env.BENCH_SCOPES !== 'off') {
  const scopes = new AsyncLocalStorage<object>();
  for (const name of ['nestjs-redis-lock.scopes', 'nestjs-redis-lock.scopes.2'])
    Object.defineProperty(globalThis, Symbol.for(name), { value: scopes });
  enterScope = () => scopes.run({}, () => {});
}

countIoredis();
serve({
  async open(name, port, connections) {
    const { open } = libraryNamed(name);
    while (clients.length < connections) clients.push(await open!(port));
    enterScope();
  },
  loop: (job) => runLoop(clients, job),
});
