import type { Receipt } from '../orders/receipt.js';
import { type Answer, atOnce, type Replica } from './shop.js';

/** The outcome of many orders, of one piece each, for a scarce article. */
export interface Rush {
  readonly inStock: number;
  readonly ordered: number;
  readonly receipts: readonly Receipt[];
  readonly left: number;
  /** How long each customer waited for an answer, in milliseconds, in ascending order. */
  readonly waits: readonly number[];
  readonly oversold: number;
  /** Whether every piece is either sold or left. */
  readonly adds: boolean;
  /** Answers that no customer should get. */
  readonly failures: readonly string[];
}

export async function rush(
  replicas: readonly Replica[],
  path: '/orders' | '/orders/unlocked',
  { sku, inStock, ordered }: { sku: string; inStock: number; ordered: number },
): Promise<Rush> {
  const [first] = replicas;
  const counted = await first!.ask('PUT', `/stock/${sku}`, { quantity: inStock });
  const answers = await atOnce(replicas, ordered, (replica) =>
    replica.ask<Receipt>('POST', path, { sku, quantity: 1 }),
  );
  const stock = await first!.ask<{ quantity: number }>('GET', `/stock/${sku}`);
  const left = stock.body.quantity;

  const receipts = answers.filter(({ status }) => status === 201).map(({ body }) => body);
  return {
    inStock,
    ordered,
    receipts,
    left,
    waits: answers.map(({ took }) => took).sort((a, b) => a - b),
    oversold: Math.max(0, receipts.length - inStock),
    adds: receipts.length + left === inStock,
    failures: [...failuresOf([counted, stock], [200]), ...failuresOf(answers, [201, 409])],
  };
}

export function failuresOf(answers: readonly Answer<unknown>[], expected: readonly number[]): string[] {
  return answers
    .filter(({ status }) => !expected.includes(status))
    .map(({ status, body }) => `${status} ${(body as { message?: string })?.message ?? ''}`);
}
