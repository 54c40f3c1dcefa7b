import './matchers.js';
import { describeAcquireAll } from './acquire-all.contract.js';
import { describeClose } from './close.contract.js';
import { describeConcurrency } from './concurrency.contract.js';
import { ContractWorld } from './contract-world.js';
import { describeDowngrade } from './downgrade.contract.js';
import { describeExclusion } from './exclusion.contract.js';
import { describeFairness } from './fair.contract.js';
import { describeFairWaiters } from './fair-waiters.contract.js';
import type { Capabilities, Fixture } from './fixture.js';
import { describeInspection } from './inspect.contract.js';
import { describeOwnership } from './ownership.contract.js';
import { describeReadWrite } from './read-write.contract.js';
import { describeTickets } from './tickets.contract.js';
import { describeTokens } from './tokens.contract.js';
import { describeWaitingWriters } from './waiting-writers.contract.js';
import { describeWaits } from './waits.contract.js';
import { describeWakeUps } from './wake-ups.contract.js';

/**
 * The contract of every backend: the rules of {@link LockBackend}, on a real store, with three clients.
 *
 *     describeLockBackend('RedisBackend, one server', openFixture);
 */
export function describeLockBackend(
  name: string,
  openFixture: () => Promise<Fixture>,
  capabilities: Capabilities = {},
): void {
  describe(`the contract of a lock backend: ${name}`, () => {
    const world = new ContractWorld(openFixture, capabilities);
    beforeAll(() => world.open(), 60_000);
    afterEach(() => world.tidy());
    afterAll(() => world.stop(), 60_000);

    describe.each(world.types)('%s lock', (type) => {
      describeOwnership(world, type);
      describeTokens(world, type);
      if (capabilities.publishes !== false) describeWakeUps(world, type);
      if (type !== 'read') describeExclusion(world, type);
    });
    if (world.has('read', 'write')) {
      describeReadWrite(world);
      describeDowngrade(world);
      describeWaitingWriters(world);
    }
    if (world.has('fair')) {
      describeFairness(world);
      describeFairWaiters(world);
    }
    describeAcquireAll(world);
    describeConcurrency(world);
    describeInspection(world);
    describeTickets(world);
    describeWaits(world);
    describeClose(world);
  });
}
