import { Controller, Delete, Get, HttpCode } from '@nestjs/common';
import { PricesService } from './prices.service.js';

@Controller('prices')
export class PricesController {
  constructor(private readonly prices: PricesService) {}

  @Get()
  list() {
    return this.prices.list();
  }

  @Get('unshared')
  unsharedList() {
    return this.prices.unsharedList();
  }

  @Delete()
  @HttpCode(204)
  forget() {
    return this.prices.forget();
  }
}
