// Throws an error that nobody catches while the program waits for Redis.
import { Redis } from 'ioredis';

Redis.prototype.connect = () =>
  new Promise(() => {
    setTimeout(() => {
      throw new Error('thrown by a listener');
    });
  });
