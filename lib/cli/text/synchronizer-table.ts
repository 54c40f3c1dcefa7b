import { describeClient } from '../../engine/describe-holder.js';
import { synchronizerText } from '../../engine/terms/state-text.js';
import type { InspectedPermit, ListedSynchronizer, SynchronizerInspection } from '../../service/lock-inspection.js';
import { leaseText } from './duration-text.js';
import { printable } from './printable.js';
import { table } from './table.js';

const TITLES = ['NAME', 'TYPE', 'STATE', 'HELD BY'];

/**
 * One line per semaphore or latch. If several clients hold permits, the line shows the first one. Waiting callers are
 * known only in their own process.
 */
export function synchronizerTable(synchronizers: readonly ListedSynchronizer[]): string[] {
  return table(
    TITLES,
    synchronizers.map((each) => [each.name, each.type, synchronizerText(each), holders(each)]),
  );
}

/** What is known about a semaphore or latch, one line each. */
export function synchronizerLines(name: string, synchronizer: SynchronizerInspection): string[] {
  const { type, permits, taken = 0 } = synchronizer;
  const more = taken - permits.length;
  return [
    `${printable(name)}: ${type}, ${synchronizerText(synchronizer)}`,
    ...permits.map(
      (permit) =>
        `  held by     ${printable(holder(permit))} (${permit.id}…); lease left: ${leaseText(permit.remainingTime)}`,
    ),
    ...(permits.length > 0 && more > 0 ? [`  and ${more} more`] : []),
  ];
}

function holders({ type, permits, taken = 0 }: SynchronizerInspection): string {
  if (type !== 'permit-expirable-semaphore') return '?';
  const [first] = permits;
  if (first === undefined) return '-';
  return holder(first) + (taken > 1 ? ` and ${taken - 1} more` : '');
}

function holder({ client }: InspectedPermit): string {
  return client === undefined ? 'a client without a record' : describeClient(client);
}
