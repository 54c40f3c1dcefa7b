import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** The longest that a payment takes, in milliseconds. */
const LONGEST = Number(process.env.PAYMENT_TIME || 15);

/** Simulates a payment provider, which takes its time. */
@Injectable()
export class PaymentsService {
  /** @param _idempotencyKey with the same one, a provider charges once */
  async charge(_sku: string, _quantity: number, _idempotencyKey: string): Promise<string> {
    await sleep(LONGEST * (1 / 3 + (Math.random() * 2) / 3));
    return randomUUID();
  }

  async refund(_payment: string): Promise<void> {
    await sleep(5);
  }
}
