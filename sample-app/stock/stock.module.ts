import { Module } from '@nestjs/common';
import { redisUrl } from '../config/redis-url.js';
import { MemoryStockStore } from './memory-stock.store.js';
import { RedisStockStore } from './redis-stock.store.js';
import { StockController } from './stock.controller.js';
import { StockService } from './stock.service.js';
import { StockStore } from './stock.store.js';

@Module({
  controllers: [StockController],
  providers: [
    StockService,
    {
      provide: StockStore,
      useFactory: () => {
        const url = redisUrl();
        return url ? new RedisStockStore(url) : new MemoryStockStore();
      },
    },
  ],
  exports: [StockService],
})
export class StockModule {}
