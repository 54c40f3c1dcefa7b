// Statements from a method of the reader's class, which has a LockService.
import { Injectable } from '@nestjs/common';
import { currentLease, LockBusyError, LockService } from 'nestjs-redis-lock';

const orderId = '42';
const transfer = async () => {};

@Injectable()
export class Example {
  constructor(protected readonly locks: LockService) {}

  protected readonly dataSource = { transaction: async <T>(work: (manager: object) => Promise<T>) => work({}) };

  async example(): Promise<void> {
    const { locks } = this;
    void locks;
    /* the block */
  }

  protected async work(..._input: unknown[]): Promise<void> {}
}

export const context = { currentLease, LockBusyError, orderId, transfer };
