// Run where node-redis is version 4, and ioredis is not installed. Prints what each connection is refused with.
import { createLockService } from 'nestjs-redis-lock/core';
import { createClient, createCluster } from 'redis';

const url = process.env.REDIS_URL;
const connections = {
  url,
  options: { client: 'node-redis', url },
  client: createClient({ url }),
  cluster: createCluster({ rootNodes: [{ url }] }),
};
const refusals = {};
for (const [name, connection] of Object.entries(connections)) {
  try {
    createLockService({ connection });
  } catch (error) {
    refusals[name] = error.message;
  }
}
console.log(JSON.stringify(refusals));
process.exit(0);
