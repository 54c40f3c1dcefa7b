import { failuresOf } from './rush.js';
import { atOnce, type Replica } from './shop.js';

/** What came of many transfers between two articles, every other one the other way round. */
export interface Transfers {
  readonly booked: number;
  /** Refused, as there was not enough of the article. */
  readonly refused: number;
  readonly before: number;
  readonly after: number;
  /** How long all of them took together, in ms. */
  readonly took: number;
  readonly failures: readonly string[];
}

export async function crossedTransfers(
  replicas: readonly Replica[],
  { skus, pieces, count }: { skus: readonly [string, string]; pieces: number; count: number },
): Promise<Transfers> {
  const [first] = replicas;
  const [a, b] = skus;
  const counted = await Promise.all(skus.map((sku) => first!.ask('PUT', `/stock/${sku}`, { quantity: pieces })));

  const start = performance.now();
  const answers = await atOnce(replicas, count, (replica, i) => {
    const [from, to] = Math.floor(i / replicas.length) % 2 === 0 ? [a, b] : [b, a];
    return replica.ask('POST', '/stock/transfers', { from, to, quantity: 1 + (i % 5) });
  });
  const took = performance.now() - start;

  const stocks = await Promise.all(skus.map((sku) => first!.ask<{ quantity: number }>('GET', `/stock/${sku}`)));
  return {
    booked: answers.filter(({ status }) => status === 201).length,
    refused: answers.filter(({ status }) => status === 409).length,
    before: 2 * pieces,
    after: stocks.reduce((sum, { body }) => sum + body.quantity, 0),
    took,
    failures: [...failuresOf([...counted, ...stocks], [200]), ...failuresOf(answers, [201, 409])],
  };
}
