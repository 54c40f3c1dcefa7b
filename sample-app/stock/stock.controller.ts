import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put } from '@nestjs/common';
import { ParseQuantityPipe } from './parse-quantity.pipe.js';
import { ParseSkuPipe } from './parse-sku.pipe.js';
import { StockService } from './stock.service.js';

@Controller('stock')
export class StockController {
  constructor(private readonly stock: StockService) {}

  @Get()
  all() {
    return this.stock.all();
  }

  @Get(':sku')
  async one(@Param('sku', ParseSkuPipe) sku: string) {
    return { sku, quantity: await this.stock.quantityOf(sku) };
  }

  @Put(':sku')
  async recount(@Param('sku', ParseSkuPipe) sku: string, @Body('quantity', new ParseQuantityPipe(0)) quantity: number) {
    await this.stock.recount(sku, quantity);
    return { sku, quantity };
  }

  @Delete(':sku')
  @HttpCode(204)
  remove(@Param('sku', ParseSkuPipe) sku: string) {
    return this.stock.remove(sku);
  }

  @Post(':sku/deliveries')
  async deliver(@Param('sku', ParseSkuPipe) sku: string, @Body('quantity', new ParseQuantityPipe()) quantity: number) {
    return { sku, quantity: await this.stock.deliver(sku, quantity) };
  }

  @Post('transfers')
  transfer(
    @Body('from', ParseSkuPipe) from: string,
    @Body('to', ParseSkuPipe) to: string,
    @Body('quantity', new ParseQuantityPipe()) quantity: number,
  ) {
    return this.stock.transfer(from, to, quantity);
  }
}
