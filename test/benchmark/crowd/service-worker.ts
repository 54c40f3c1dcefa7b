// A process with services of one contestant. crew/node-crew.ts gives it its tasks.
import type { LockClient } from '../contestants/contestant.js';
import { leastLine } from '../contestants/least-line.js';
import { libraryNamed } from '../pairs/library-at.js';
import { countIoredis, countMessages } from '../worker/sent-commands.js';
import { serve } from '../worker/serve.js';
import { runServices } from '../worker/services.js';
import { POLLERS } from './pollers.js';

const clients: LockClient[] = [];

countIoredis();
countMessages();
serve({
  async open(name, port, services) {
    const { open } = [...POLLERS, leastLine].find((poller) => poller.name === name) ?? libraryNamed(name);
    while (clients.length < services) clients.push(await open!(port));
  },
  contend: (job) => runServices(clients, job),
});
