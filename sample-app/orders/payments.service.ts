import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Simulates a payment provider, which takes its time. */
@Injectable()
export class PaymentsService {
  async charge(_sku: string, _quantity: number): Promise<string> {
    await sleep(5 + Math.random() * 10);
    return randomUUID();
  }

  async refund(_payment: string): Promise<void> {
    await sleep(5);
  }
}
