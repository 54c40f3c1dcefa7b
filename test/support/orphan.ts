// Run by redis-server.test.ts: starts a server, prints its process, and is killed.
import { startRedis } from './servers/redis-server.js';

const server = await startRedis();
process.stdout.write(JSON.stringify({ pid: server.pid, folder: server.folder }));
setInterval(() => {}, 1000);
