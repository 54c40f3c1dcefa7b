import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { StaleWriteException, type StockChange, StockStore } from './stock.store.js';

const ROUND_TRIP = 1;

@Injectable()
export class MemoryStockStore extends StockStore {
  private readonly quantities = new Map<string, number>();
  private readonly tokens = new Map<string, number>();

  async quantityOf(sku: string): Promise<number | undefined> {
    await sleep(ROUND_TRIP); // as if to a database
    return this.quantities.get(sku);
  }

  async all(): Promise<Record<string, number>> {
    await sleep(ROUND_TRIP);
    return Object.fromEntries(this.quantities);
  }

  async write(changes: readonly StockChange[]): Promise<void> {
    await sleep(ROUND_TRIP);
    for (const { sku, fencingToken } of changes) {
      if (fencingToken !== undefined && fencingToken < (this.tokens.get(sku) ?? 0)) throw new StaleWriteException(sku);
    }
    for (const { sku, quantity, fencingToken } of changes) {
      this.quantities.set(sku, quantity);
      if (fencingToken !== undefined) this.tokens.set(sku, fencingToken);
    }
  }

  async remove(sku: string): Promise<void> {
    this.quantities.delete(sku);
    this.tokens.delete(sku);
  }
}
