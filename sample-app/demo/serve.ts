import { setTimeout as sleep } from 'node:timers/promises';
import type { Replica } from './shop.js';

/** Payments are slow, so that there is something to see. */
export const SLOW_PAYMENTS = { PAYMENT_TIME: '1500' };

const SKUS = ['lamp', 'chair', 'table', 'sofa', 'shelf', 'desk'].map((article) => `${article}-to-look-at`);
const CUSTOMERS = 16;
const ENOUGH = 1_000_000;

/** Customers who order again and again, most of them lamps. Runs until it is stopped. */
export async function keepOrdering(replicas: readonly Replica[]): Promise<never> {
  await Promise.all(SKUS.map((sku) => replicas[0]!.ask('PUT', `/stock/${sku}`, { quantity: ENOUGH })));
  await Promise.all(Array.from({ length: CUSTOMERS }, (_, n) => orderForever(replicas[n % replicas.length]!, n)));
  throw new Error('no customer is left');
}

async function orderForever(replica: Replica, n: number): Promise<never> {
  for (;;) {
    const sku = n < CUSTOMERS / 2 ? SKUS[0] : SKUS[Math.floor(Math.random() * SKUS.length)];
    // An order that waited too long is answered with 423: the customer comes back.
    await replica.ask('POST', '/orders', { sku, quantity: 1 }).catch(() => {});
    await sleep(Math.random() * 1_000);
  }
}

/** Takes away what was put on sale. */
export async function clearStock([first]: readonly Replica[]): Promise<void> {
  await Promise.allSettled(SKUS.map((sku) => first!.ask('DELETE', `/stock/${sku}`)));
}
