import { Body, Controller, Post } from '@nestjs/common';
import { ParseQuantityPipe } from '../stock/parse-quantity.pipe.js';
import { ParseSkuPipe } from '../stock/parse-sku.pipe.js';
import { OrdersService } from './orders.service.js';

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post()
  order(@Body('sku', ParseSkuPipe) sku: string, @Body('quantity', new ParseQuantityPipe()) quantity: number) {
    return this.orders.order(sku, quantity);
  }

  @Post('unlocked')
  orderUnlocked(@Body('sku', ParseSkuPipe) sku: string, @Body('quantity', new ParseQuantityPipe()) quantity: number) {
    return this.orders.orderUnlocked(sku, quantity);
  }
}
