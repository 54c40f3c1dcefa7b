import { PreconditionFailedException } from '@nestjs/common';

/** A new quantity, and the fencing token of the lock under which it was worked out. */
export interface StockChange {
  readonly sku: string;
  readonly quantity: number;
  readonly fencingToken?: number;
}

/** How many pieces of which article there are. It reads and writes; that nobody else does in between is the lock's business. */
export abstract class StockStore {
  abstract quantityOf(sku: string): Promise<number | undefined>;

  abstract all(): Promise<Record<string, number>>;

  /**
   * Makes all changes, or none.
   *
   * The fencing token is the second line of defence: a writer that was held up for so long that its lock lapsed, and went to
   * somebody else, comes with a lower token than the store has seen, and is refused.
   *
   * @throws StaleWriteException
   */
  abstract write(changes: readonly StockChange[]): Promise<void>;

  abstract remove(sku: string): Promise<void>;
}

export class StaleWriteException extends PreconditionFailedException {
  constructor(sku: string) {
    super(`somebody with a later lock has written the stock of ${sku} meanwhile`);
  }
}
