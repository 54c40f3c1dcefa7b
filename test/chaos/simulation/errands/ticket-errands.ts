import type { RecordedLease } from '../../history-recorder.js';
import type { Caller } from './caller.js';
import type { Errand } from './errands.js';

/** How long a detached lock waits to be adopted, in milliseconds: shorter and longer than leases, which are renewed. */
const SHORTEST = 100;
const LONGEST = 1_800;

/** Leaves the lock to any process that finds the ticket. */
async function leave({ recorder, shared, chance }: Caller, recorded: RecordedLease): Promise<void> {
  const ticket = await recorder.detach(recorded, chance.whole(SHORTEST, LONGEST));
  if (ticket !== undefined) shared.tickets.push(ticket);
}

/** Acquires and detaches, sometimes after some renewals. */
const detach: Errand = async (caller) => {
  const { chance, recorder, process } = caller;
  const type = chance.pick(['reentrant', 'fenced', 'write'] as const);
  const name = caller.name(type === 'write' ? 'page' : type);
  const recorded = await recorder.acquire(name, { type });
  if (recorded === undefined) return;
  if (chance.chance(0.3)) await process.sleep(chance.between(100, 600));
  else await caller.stay();
  await leave(caller, recorded);
  // This has no effect, like every command of the process that detached it.
  if (chance.chance(0.2)) await recorded.lease.release().catch(() => {});
};

/** Adopts a lock that was detached in any process. One ticket in three is used again, at the same moment or later. */
const adopt: Errand = async (caller) => {
  const { chance, recorder, shared } = caller;
  const ticket = shared.tickets.shift();
  if (ticket === undefined) return;
  if (chance.chance(0.3)) shared.tickets.push(ticket);
  const recorded = await recorder.adopt(ticket);
  if (recorded === undefined) return;
  await caller.stay();
  if (chance.chance(0.3)) await leave(caller, recorded);
  else await recorded.release();
};

export const TICKET_ERRANDS = { detach, adopt };
