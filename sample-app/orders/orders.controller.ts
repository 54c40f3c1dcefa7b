import { Body, Controller, Post, Req } from '@nestjs/common';
import { Idempotent, idempotencyKey } from 'nestjs-redis-lock/idempotency';
import { ParseQuantityPipe } from '../stock/parse-quantity.pipe.js';
import { ParseSkuPipe } from '../stock/parse-sku.pipe.js';
import { OrdersService } from './orders.service.js';

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  /**
   * With an `Idempotency-Key`, an order that is sent again is paid once. Customers of this shop do not log in. Where they
   * do, the scope is their id, and the key is required.
   */
  @Post()
  @Idempotent({ scope: () => 'customers', keepFor: '1h', required: false })
  order(
    @Body('sku', ParseSkuPipe) sku: string,
    @Body('quantity', new ParseQuantityPipe()) quantity: number,
    @Req() request: object,
  ) {
    return this.orders.order(sku, quantity, idempotencyKey(request));
  }

  @Post('unlocked')
  orderUnlocked(@Body('sku', ParseSkuPipe) sku: string, @Body('quantity', new ParseQuantityPipe()) quantity: number) {
    return this.orders.orderUnlocked(sku, quantity);
  }
}
