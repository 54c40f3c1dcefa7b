// Prints which Redis clients are loaded together with the library.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
for (const entry of ['nestjs-redis-lock', 'nestjs-redis-lock/core', 'nestjs-redis-lock/testing']) {
  await import(entry);
  require(entry);
}
const loaded = Object.keys(require.cache).filter((file) =>
  /node_modules\/(ioredis|iovalkey|redis|@redis)\//.test(file),
);
console.log(JSON.stringify({ loaded }));
