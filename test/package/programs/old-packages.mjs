// Run where old versions of what locks can use are installed. Prints what each use of them is refused with.
import { createRequire } from 'node:module';
import { createLockService } from 'nestjs-redis-lock/core';
import { advisoryLocks } from 'nestjs-redis-lock/sql';

const require = createRequire(import.meta.url);
const refusals = {};
const attempt = (name, use) => {
  try {
    use();
    refusals[name] = null;
  } catch (error) {
    refusals[name] = `${error.name}: ${error.message}`;
  }
};

const Ioredis = require('ioredis');
const ioredis = new Ioredis({ lazyConnect: true });
const cluster = new Ioredis.Cluster([1], { lazyConnect: true });
const nodeRedis = require('redis').createClient({ port: 1, retry_strategy: () => undefined });
nodeRedis.on('error', () => {});
attempt('url', () => createLockService({ connection: 'redis://127.0.0.1:1' }));
attempt('options of ioredis', () => createLockService({ connection: { host: '127.0.0.1', port: 1 } }));
attempt('options of node-redis', () => createLockService({ connection: { client: 'node-redis' } }));
attempt('client of ioredis', () => createLockService({ connection: ioredis }));
attempt('cluster of ioredis', () => createLockService({ connection: () => cluster }));
attempt('client of node-redis', () => createLockService({ connection: nodeRedis }));
attempt('url of MySQL', () => advisoryLocks({ url: 'mysql://127.0.0.1:1/a' }));
attempt('pool of mysql2', () => advisoryLocks({ pool: require('mysql2').createPool({}), connections: 1 }));
attempt('pool of mysql2/promise', () =>
  advisoryLocks({ pool: require('mysql2/promise').createPool({}), connections: 1 }),
);
attempt('url of PostgreSQL', () => advisoryLocks({ url: 'postgres://127.0.0.1:1/a' }));
attempt('pool of pg', () => advisoryLocks({ pool: new (require('pg').Pool)(), connections: 1 }));
console.log(JSON.stringify(refusals));
process.exit(0);
