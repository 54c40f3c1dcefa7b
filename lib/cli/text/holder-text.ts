import { describeHolder } from '../../engine/clients/holder-client.js';
import { withoutRecordBecause } from '../../engine/clients/without-record.js';
import type { InspectedOwner, LockInspection } from '../../service/lock-inspection.js';
import { leaseText } from './duration-text.js';
import { printable } from './printable.js';

/** `shop-2 on web-7, pid 4242, in OrdersService.pay, since 31 s (7242…:17)` */
export function holderText({ owner, client }: InspectedOwner): string {
  return printable(describeHolder(owner, client, withoutRecordBecause(owner)));
}

/** What is known about a lock that is held, a line each. */
export function inspectionLines(name: string, { type, owners, waiting, fencingToken }: LockInspection): string[] {
  return [
    `${printable(name)} is locked (${type})`,
    ...owners.map((owner) => `  held by     ${holderText(owner)}; lease left: ${leaseText(owner.remainingTime)}`),
    `  waiting     ${waiting}`,
    ...(fencingToken === undefined ? [] : [`  last token  ${fencingToken}`]),
  ];
}
