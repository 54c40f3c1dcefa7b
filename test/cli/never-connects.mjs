// A connection whose promise never settles, as was once the case with ioredis and a failing cluster. No timer keeps the
// process alive.
import { Redis } from 'ioredis';

Redis.prototype.connect = () => new Promise(() => {});
const { setTimeout } = globalThis;
globalThis.setTimeout = (...args) => setTimeout(...args).unref();
