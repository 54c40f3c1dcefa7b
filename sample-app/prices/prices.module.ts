import { Module } from '@nestjs/common';
import { StockModule } from '../stock/stock.module.js';
import { PricesController } from './prices.controller.js';
import { PricesService } from './prices.service.js';

@Module({
  imports: [StockModule],
  controllers: [PricesController],
  providers: [PricesService],
})
export class PricesModule {}
