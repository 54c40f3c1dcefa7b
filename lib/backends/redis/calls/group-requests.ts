import { slotOf } from '../hash-slot.js';
import type { BatchedRequest } from './batched-request.js';
import type { Batchable, BatchedScript } from './batched-script.js';

/** Divides requests into groups that can share a script call: alike, and in a cluster also in one slot. */
export function groupRequests<Request extends Batchable, Reply>(
  items: BatchedRequest<Request, Reply>[],
  command: BatchedScript<Request, Reply>,
  isCluster: boolean,
): BatchedRequest<Request, Reply>[][] {
  if (items.length === 1) return [items];
  const groups: BatchedRequest<Request, Reply>[][] = [];
  const slots: (number | undefined)[] = [];
  for (const item of items) {
    const slot = isCluster ? slotOf(item.request.key) : undefined;
    let match = 0;
    while (match < groups.length && !(slots[match] === slot && command.alike(groups[match][0].request, item.request))) {
      match++;
    }
    if (match < groups.length) groups[match].push(item);
    else slots[groups.push([item]) - 1] = slot;
  }
  return groups;
}
