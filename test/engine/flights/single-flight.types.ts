import type { LockService } from '../../../lib/core.js';

/** What the types of single flights allow, checked by the compiler. */
export async function flightTypes(locks: LockService): Promise<void> {
  interface Price {
    readonly cents: number;
    readonly note?: string;
  }
  const price: Price = await locks.singleFlight('a', async (): Promise<Price> => ({ cents: 1 }));
  const list: (string | null)[] = await locks.singleFlight('a', { keepFor: '1m' }, async () => ['a', null]);
  const nothing: undefined = await locks.singleFlight('a', async () => undefined);
  await locks.singleFlight('a', async () => {});
  const date: Date = await locks.singleFlight(
    'a',
    { serialize: (date: Date) => date.toISOString(), deserialize: (text) => new Date(text) },
    async () => new Date(),
  );
  // @ts-expect-error a Date is not JSON
  await locks.singleFlight('a', async () => ({ at: new Date() }));
  // @ts-expect-error nor is a Map
  await locks.singleFlight('a', { keepFor: '1m' }, async () => new Map<string, string>());
  // @ts-expect-error nor is undefined inside
  await locks.singleFlight('a', async (): Promise<{ a: string | undefined }> => ({ a: undefined }));
  // @ts-expect-error the options of a single flight do not include `type`
  await locks.singleFlight('a', { type: 'fair' }, async () => 1);
  void [price, list, nothing, date];
}
