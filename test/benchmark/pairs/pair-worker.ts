// One process with one build of the library, and no other code that locks; crew/node-crew.ts tells it what to do.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockClient } from '../contestants/contestant.js';
import { runLoop } from '../worker/lock-loop.js';
import { countIoredis } from '../worker/sent-commands.js';
import { serve } from '../worker/serve.js';
import { libraryNamed } from './library-at.js';

const clients: LockClient[] = [];

// As in every application that has used withLock() or a decorated method once: it makes each promise dearer (Node.js 20
// and 22), and versions differ in when they switch it on. There is one, which each version finds under its own name,
// because each more costs as much. The first scope comes after the imports, as in an application: else V8 optimizes
// Node.js' promise hooks for the module loader's promises. BENCH_SCOPES=off leaves that to them.
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
