import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';
import { StaleWriteException, type StockChange, StockStore } from './stock.store.js';

const QUANTITIES = '{shop}:stock';
const TOKENS = '{shop}:stock:tokens';

// ARGV: SKU, quantity and fencing token ('' without one) of each change. Returns the SKU whose token is stale, or nil.
const WRITE = `
  for i = 1, #ARGV, 3 do
    local seen = tonumber(redis.call('HGET', KEYS[2], ARGV[i])) or 0
    if ARGV[i + 2] ~= '' and tonumber(ARGV[i + 2]) < seen then
      return ARGV[i]
    end
  end
  for i = 1, #ARGV, 3 do
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    if ARGV[i + 2] ~= '' then
      redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 2])
    end
  end
  return nil`;

@Injectable()
export class RedisStockStore extends StockStore implements OnApplicationShutdown {
  private readonly redis: Redis;

  constructor(url: string) {
    super();
    this.redis = new Redis(url);
  }

  async quantityOf(sku: string): Promise<number | undefined> {
    const quantity = await this.redis.hget(QUANTITIES, sku);
    return quantity === null ? undefined : Number(quantity);
  }

  async all(): Promise<Record<string, number>> {
    const quantities = Object.entries(await this.redis.hgetall(QUANTITIES));
    return Object.fromEntries(quantities.map(([sku, quantity]) => [sku, Number(quantity)]));
  }

  async write(changes: readonly StockChange[]): Promise<void> {
    const args = changes.flatMap(({ sku, quantity, fencingToken = '' }) => [sku, quantity, fencingToken]);
    const stale = await this.redis.eval(WRITE, 2, QUANTITIES, TOKENS, ...args);
    if (typeof stale === 'string') throw new StaleWriteException(stale);
  }

  async remove(sku: string): Promise<void> {
    await Promise.all([this.redis.hdel(QUANTITIES, sku), this.redis.hdel(TOKENS, sku)]);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.redis.quit();
  }
}
