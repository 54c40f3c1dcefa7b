import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { LockService, SingleFlight } from 'nestjs-redis-lock';
import { REPLICA } from '../config/replica.js';
import { StockService } from '../stock/stock.service.js';

const PRICE_LIST = 'price-list';

/** In cents. The last pieces of an article cost more. */
const PRICE = { plenty: 4_900, scarce: 5_900 };
const SCARCE = 10;

/** How long suppliers take to answer, in milliseconds. */
const SUPPLIERS = 250;

export interface PriceList {
  /** Another one for each computation. */
  readonly edition: string;
  /** The process that computed it. */
  readonly replica: string;
  readonly prices: Readonly<Record<string, number>>;
}

@Injectable()
export class PricesService {
  constructor(
    private readonly stock: StockService,
    private readonly locks: LockService,
  ) {}

  /** Computes the list once for all customers of all replicas, and keeps it for a minute. */
  @SingleFlight({ key: PRICE_LIST, keepFor: '1m' })
  async list(): Promise<PriceList> {
    return this.compute();
  }

  /** The same without the single flight: it computes the list for each customer. */
  async unsharedList(): Promise<PriceList> {
    return this.compute();
  }

  /** Has the list computed again. A list that is being computed at this moment is not kept. */
  async forget(): Promise<void> {
    await this.locks.forgetResult(PRICE_LIST);
  }

  private async compute(): Promise<PriceList> {
    const stock = Object.entries(await this.stock.all());
    await sleep(SUPPLIERS);
    const prices = stock.map(([sku, quantity]) => [sku, quantity > SCARCE ? PRICE.plenty : PRICE.scarce] as const);
    return { edition: randomUUID(), replica: REPLICA, prices: Object.fromEntries(prices) };
  }
}
