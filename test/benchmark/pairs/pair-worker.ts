// One process with one build of the library, and no other code that locks; crew/node-crew.ts tells it what to do.
import type { LockClient } from '../contestants/contestant.js';
import { runLoop } from '../worker/lock-loop.js';
import { countIoredis } from '../worker/sent-commands.js';
import { serve } from '../worker/serve.js';
import { libraryAt } from './library-at.js';

const clients: LockClient[] = [];

countIoredis();
serve({
  async open(folder, port, connections) {
    const { open } = libraryAt(folder);
    while (clients.length < connections) clients.push(await open!(port));
  },
  loop: (job) => runLoop(clients, job),
});
