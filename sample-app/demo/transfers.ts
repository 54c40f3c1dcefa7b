import { failuresOf } from './rush.js';
import { atOnce, type Replica } from './shop.js';

/** The outcome of many transfers between two articles, every second one in the opposite direction. */
export interface Transfers {
  readonly booked: number;
  /** Refused because there was not enough of the article. */
  readonly refused: number;
  /** Pieces of both articles together. */
  readonly before: number;
  readonly after: number;
  /** Whether there is as much of each article as the booked transfers leave. */
  readonly adds: boolean;
  readonly failures: readonly string[];
}

export async function crossedTransfers(
  replicas: readonly Replica[],
  { skus, pieces, count }: { skus: readonly [string, string]; pieces: number; count: number },
): Promise<Transfers> {
  const [first] = replicas;
  const [a, b] = skus;
  const counted = await Promise.all(skus.map((sku) => first!.ask('PUT', `/stock/${sku}`, { quantity: pieces })));

  const moved = { [a]: 0, [b]: 0 };
  const answers = await atOnce(replicas, count, async (replica, i) => {
    const [from, to] = Math.floor(i / replicas.length) % 2 === 0 ? [a, b] : [b, a];
    const quantity = 1 + (i % 5);
    const answer = await replica.ask('POST', '/stock/transfers', { from, to, quantity });
    if (answer.status === 201) {
      moved[from]! -= quantity;
      moved[to]! += quantity;
    }
    return answer;
  });

  const stocks = await Promise.all(skus.map((sku) => first!.ask<{ quantity: number }>('GET', `/stock/${sku}`)));
  const [leftOfA, leftOfB] = stocks.map(({ body }) => body.quantity);
  return {
    booked: answers.filter(({ status }) => status === 201).length,
    refused: answers.filter(({ status }) => status === 409).length,
    before: 2 * pieces,
    after: leftOfA! + leftOfB!,
    adds: leftOfA === pieces + moved[a]! && leftOfB === pieces + moved[b]!,
    failures: [...failuresOf([...counted, ...stocks], [200]), ...failuresOf(answers, [201, 409])],
  };
}
