// Methods and constructors from a service of the reader.
import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import {
  currentLease,
  DistributedLock,
  InjectLockService,
  Leader,
  type Lease,
  LockBusyError,
  LockService,
  SingleFlight,
} from 'nestjs-redis-lock';
import { Observable } from 'rxjs';
import { database } from '../support/database.js';

export interface Order {
  readonly id: string;
  readonly customer: { readonly id: string };
  readonly items: readonly { readonly sku: string }[];
}

export const order: Order = { id: '42', customer: { id: '7' }, items: [{ sku: 'a' }, { sku: 'b' }] };

@Injectable()
export class Example {
  protected readonly repository = { find: async (_id: string) => order, save: async (_order: Order) => {} };
  protected readonly db = database;
  protected readonly dataSource = { transaction: async <T>(work: (manager: object) => Promise<T>) => work({}) };

  protected async work(..._input: unknown[]): Promise<void> {}

  /* the block */
}

export const context = {
  Cron,
  currentLease,
  InjectLockService,
  Leader,
  LockBusyError,
  LockService,
  Observable,
  DistributedLock,
  SingleFlight,
};
export type Context = Lease;
