import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { LockExceptionFilter, RedisLockModule } from 'nestjs-redis-lock';
import { RedisLockDashboardModule } from 'nestjs-redis-lock/dashboard';
import { LoopbackGuard } from './config/loopback.guard.js';
import { redisUrl } from './config/redis-url.js';
import { REPLICA } from './config/replica.js';
import { OrdersModule } from './orders/orders.module.js';
import { PricesModule } from './prices/prices.module.js';
import { ReportsModule } from './reports/reports.module.js';
import { StockModule } from './stock/stock.module.js';

@Module({
  imports: [
    RedisLockModule.forRootAsync({
      useFactory: () => {
        const connection = redisUrl();
        return { applicationName: REPLICA, waitTime: '10s', ...(connection ? { connection } : { backend: 'memory' }) };
      },
    }),
    // Who holds and who waits: http://localhost:3000/locks
    RedisLockDashboardModule.forRoot({ path: 'locks', guards: [LoopbackGuard], readOnly: false }),
    ScheduleModule.forRoot(),
    StockModule,
    OrdersModule,
    PricesModule,
    ReportsModule,
  ],
  // A request whose lock stays busy for its waitTime is answered with 423 Locked.
  providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }],
})
export class AppModule {}
