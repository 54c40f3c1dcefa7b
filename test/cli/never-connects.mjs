// A connection whose promise nobody settles, as one of ioredis to a cluster that fails was, and no timer that keeps the process alive.
import { Redis } from 'ioredis';

Redis.prototype.connect = () => new Promise(() => {});
const { setTimeout } = globalThis;
globalThis.setTimeout = (...args) => setTimeout(...args).unref();
