// A connection whose promise nobody settles, as one of ioredis to a cluster that fails was.
import { Redis } from 'ioredis';

Redis.prototype.connect = () => new Promise(() => {});
