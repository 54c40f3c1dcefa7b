import type { ClientRecord } from '../../backends/lock-backend.js';
import type { HeldPermit, SynchronizerState } from '../../backends/synchronizer-state.js';
import { describeClient, holderIn } from '../describe-holder.js';
import type { Services } from '../services.js';
import { isPermitOf, PermitHolders } from './permit-id.js';

/** How many clients are named. */
const MOST_NAMED = 5;

/**
 * Writes why the callers of a semaphore or latch wait, for the log: who holds the permits, as far as this is known, or
 * the count of the latch.
 */
export async function describeObstacle(
  services: Pick<Services, 'backend' | 'clientId'>,
  key: string,
  write: (obstacle: string) => void,
): Promise<void> {
  const { synchronizers } = services.backend;
  if (synchronizers?.inspect === undefined) return write('the reason is not known');
  let obstacle = 'the reason is not known, because the backend does not answer';
  try {
    const state = await synchronizers.inspect(key);
    obstacle = state === undefined ? 'it does not exist' : await describe(services, state);
  } catch {
    // an outage has its own log lines
  }
  write(obstacle);
}

async function describe(services: Pick<Services, 'backend' | 'clientId'>, state: SynchronizerState): Promise<string> {
  const { type, count, total, acquired, permits } = state;
  // A number that Redisson has created may be that of a latch or of a semaphore.
  if (type === 'count-down-latch' || type === 'counter') return `its count is ${count}`;
  if (acquired === 0)
    return `${count} of ${total ?? 'its'} permits are available. Nobody knows who holds the others, because they have no leases`;
  return `${count} of ${total ?? count + acquired} permits are available; held by ${await describeHolders(services, permits)}`;
}

/** For example `this process (2), shop on web-7, pid 4242 (1)`. */
async function describeHolders(
  { backend, clientId }: Pick<Services, 'backend' | 'clientId'>,
  permits: readonly HeldPermit[],
): Promise<string> {
  const holders = new PermitHolders<ClientRecord>();
  for (const record of (await backend.directory?.clients()) ?? []) holders.add(record);
  const counts = new Map<string, number>();
  for (const { id } of permits) {
    const record = holders.of(id);
    const other = record === undefined ? 'a client without a record' : describeClient(holderIn(record, id));
    const who = isPermitOf(clientId, id) ? 'this process' : other;
    counts.set(who, (counts.get(who) ?? 0) + 1);
  }
  const named = [...counts].slice(0, MOST_NAMED).map(([who, number]) => `${who} (${number})`);
  return `${named.join(', ')}${counts.size > MOST_NAMED ? ' and others' : ''}`;
}
