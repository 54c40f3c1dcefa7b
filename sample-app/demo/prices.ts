import type { PriceList } from '../prices/prices.service.js';
import { failuresOf } from './rush.js';
import { atOnce, type Replica } from './shop.js';

/** The outcome of many customers who ask for the price list at the same moment. */
export interface PriceLists {
  readonly customers: number;
  /** Which replica computed each of the lists that they got. */
  readonly computedBy: readonly string[];
  readonly failures: readonly string[];
}

export async function priceLists(
  replicas: readonly Replica[],
  path: '/prices' | '/prices/unshared',
  customers: number,
): Promise<PriceLists> {
  const forgotten = await forgetPrices(replicas);
  const answers = await atOnce(replicas, customers, (replica) => replica.ask<PriceList>('GET', path));
  const lists = answers.filter(({ status }) => status === 200).map(({ body }) => body);
  return {
    customers,
    computedBy: [...new Map(lists.map(({ edition, replica }) => [edition, replica])).values()],
    failures: [...failuresOf([forgotten], [204]), ...failuresOf(answers, [200])],
  };
}

/** A shared Redis may still keep the list of another demo. */
export function forgetPrices([first]: readonly Replica[]) {
  return first!.ask('DELETE', '/prices');
}
