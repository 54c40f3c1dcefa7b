import { randomUUID } from 'node:crypto';
import { ConflictException, Injectable } from '@nestjs/common';
import { currentLease, DistributedLock } from 'nestjs-redis-lock';
import { REPLICA } from '../config/replica.js';
import { StockService } from '../stock/stock.service.js';
import { PaymentsService } from './payments.service.js';
import type { Receipt } from './receipt.js';

@Injectable()
export class OrdersService {
  constructor(
    private readonly stock: StockService,
    private readonly payments: PaymentsService,
  ) {}

  /**
   * Takes one order of an article at a time, over all processes of the shop. Orders of other articles do not wait for
   * it.
   */
  @DistributedLock({ key: 'sku:#<args[0]>', waitTime: '10s' })
  async order(sku: string, quantity: number, paymentKey: string): Promise<Receipt> {
    return this.sell(sku, quantity, paymentKey);
  }

  /** The same without the lock: it sells more than there is. */
  async orderUnlocked(sku: string, quantity: number): Promise<Receipt> {
    return this.sell(sku, quantity, randomUUID());
  }

  private async sell(sku: string, quantity: number, paymentKey: string): Promise<Receipt> {
    const startedAt = Date.now();
    const inStock = await this.stock.quantityOf(sku);
    if (inStock < quantity) throw new ConflictException(`only ${inStock} of ${sku} left`);

    // Without the lock, other orders read the same stock while this customer pays, and sell the same piece again.
    const payment = await this.payments.charge(sku, quantity, paymentKey);

    const fencingToken = currentLease()?.fencingToken;
    try {
      await this.stock.write({ sku, quantity: inStock - quantity, fencingToken });
    } catch (error) {
      await this.payments.refund(payment);
      throw error;
    }
    return { sku, quantity, payment, replica: REPLICA, fencingToken, startedAt, endedAt: Date.now() };
  }
}
