import { PreconditionFailedException } from '@nestjs/common';

/** A new quantity, and the fencing token of the lock under which it was computed. */
export interface StockChange {
  readonly sku: string;
  readonly quantity: number;
  readonly fencingToken?: number;
}

/** How many pieces of each article there are. It reads and writes; the locks keep others from writing in between. */
export abstract class StockStore {
  abstract quantityOf(sku: string): Promise<number | undefined>;

  abstract all(): Promise<Record<string, number>>;

  /**
   * Makes all changes, or none.
   *
   * The fencing token is the second line of defence. A writer that was paused for so long that it lost its lock to
   * another one has a lower token than the store has seen, and is refused.
   *
   * @throws StaleWriteException
   */
  abstract write(changes: readonly StockChange[]): Promise<void>;

  abstract remove(sku: string): Promise<void>;
}

export class StaleWriteException extends PreconditionFailedException {
  constructor(sku: string) {
    super(`the stock of ${sku} was written meanwhile under a later lock`);
  }
}
