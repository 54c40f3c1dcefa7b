// Expressions from the imports of a module.
import { Redis } from 'ioredis';
import { RedisLockModule } from 'nestjs-redis-lock';
import { createClient } from 'redis';

/** As in @nestjs/config. */
class ConfigService {
  getOrThrow(_name: string): string {
    return 'redis://localhost:6379';
  }
}

const existingRedis = new Redis({ lazyConnect: true });
const nodeRedis = createClient();
const host = 'localhost';
const port = 6379;

export const imports = () => {
  /* the block */
};

export const context = { ConfigService, existingRedis, host, nodeRedis, port, RedisLockModule };
