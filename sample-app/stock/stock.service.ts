import { BadRequestException, ConflictException, Injectable, NotFoundException } from '@nestjs/common';
import { currentLease, DistributedLock, LockService } from 'nestjs-redis-lock';
import { type StockChange, StockStore } from './stock.store.js';

@Injectable()
export class StockService {
  constructor(
    private readonly store: StockStore,
    private readonly locks: LockService,
  ) {}

  async quantityOf(sku: string): Promise<number> {
    const quantity = await this.store.quantityOf(sku);
    if (quantity === undefined) throw new NotFoundException(`there is no article ${sku}`);
    return quantity;
  }

  all(): Promise<Record<string, number>> {
    return this.store.all();
  }

  write(...changes: StockChange[]): Promise<void> {
    return this.store.write(changes);
  }

  /**
   * Moves pieces of one article to another. It locks both articles or none: a transfer in the other direction, at the
   * same moment, does not end in a deadlock.
   */
  @DistributedLock({ key: (from: string, to: string) => [`sku:${from}`, `sku:${to}`], waitTime: '10s' })
  async transfer(from: string, to: string, quantity: number): Promise<Record<string, number>> {
    if (from === to) throw new BadRequestException('a transfer needs two articles');
    const [source, target] = await Promise.all([this.quantityOf(from), this.quantityOf(to)]);
    if (source < quantity) throw new ConflictException(`only ${source} of ${from} left`);

    const tokens = currentLease()?.tokens; // each lock has its own fencing token
    await this.write(
      { sku: from, quantity: source - quantity, fencingToken: tokens?.get(`sku:${from}`) },
      { sku: to, quantity: target + quantity, fencingToken: tokens?.get(`sku:${to}`) },
    );
    return { [from]: source - quantity, [to]: target + quantity };
  }

  /**
   * Adds pieces that a supplier has brought. Nobody stands in the shop for them, so it waits for as long as it takes.
   */
  @DistributedLock({ key: 'sku:#<args[0]>', waitTime: Infinity })
  async deliver(sku: string, quantity: number): Promise<number> {
    const delivered = (await this.quantityOf(sku)) + quantity;
    await this.write({ sku, quantity: delivered, fencingToken: currentLease()?.fencingToken });
    return delivered;
  }

  /** Records what was counted in stocktaking, unless the article stays locked for half a second. */
  async recount(sku: string, quantity: number): Promise<void> {
    await this.locks.withLock(`sku:${sku}`, { waitTime: '500ms' }, (lease) =>
      this.write({ sku, quantity, fencingToken: lease.fencingToken }),
    );
  }

  /** Removes an article from the range. */
  async remove(sku: string): Promise<void> {
    await this.locks.withLock(`sku:${sku}`, { waitTime: '500ms' }, () => this.store.remove(sku));
  }
}
