import './support/matchers.js';
import { describeAcquireAll } from './clauses/acquire-all.contract.js';
import { describeAdoption } from './clauses/adoption.contract.js';
import { describeClose } from './clauses/close.contract.js';
import { describeConcurrency } from './clauses/concurrency.contract.js';
import { describeDowngrade } from './clauses/downgrade.contract.js';
import { describeExclusion } from './clauses/exclusion.contract.js';
import { describeFairness } from './clauses/fair.contract.js';
import { describeFairWaiters } from './clauses/fair-waiters.contract.js';
import { describeFlights } from './clauses/flights.contract.js';
import { describeForcedRelease, describeForcedReleaseOfReaders } from './clauses/forced-release.contract.js';
import { describeInspection } from './clauses/inspect.contract.js';
import { describeLine } from './clauses/line.contract.js';
import { describeNewest } from './clauses/newest.contract.js';
import { describeOwnership } from './clauses/ownership.contract.js';
import { describePermits } from './clauses/permits.contract.js';
import { describeReadWrite } from './clauses/read-write.contract.js';
import { describeReadWriteLine } from './clauses/read-write-line.contract.js';
import { describeTokens } from './clauses/tokens.contract.js';
import { describeWaitingWriters } from './clauses/waiting-writers.contract.js';
import { describeWaits } from './clauses/waits.contract.js';
import { describeWakeUps } from './clauses/wake-ups.contract.js';
import { ContractWorld } from './support/contract-world.js';
import type { Capabilities, Fixture } from './support/fixture.js';

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
    beforeAll(() => world.open());
    afterEach(() => world.tidy());
    afterAll(() => world.stop());

    describe.each(world.types)('%s lock', (type) => {
      describeOwnership(world, type);
      describeForcedRelease(world, type);
      describeTokens(world, type);
      describeAdoption(world, type);
      if (capabilities.publishes !== false) describeWakeUps(world, type);
      if (type !== 'read') describeExclusion(world, type);
      if ((type === 'reentrant' || type === 'fenced') && capabilities.lines !== false) describeLine(world, type);
      if (type === 'reentrant' && capabilities.lines !== false) describeNewest(world);
    });
    if (world.has('read', 'write')) {
      describeReadWrite(world);
      describeForcedReleaseOfReaders(world);
      describeDowngrade(world);
      describeWaitingWriters(world);
      if (capabilities.lines !== false) describeReadWriteLine(world);
    }
    if (world.has('fair')) {
      describeFairness(world);
      describeFairWaiters(world);
    }
    if (world.has('permits')) describePermits(world);
    describeAcquireAll(world);
    describeConcurrency(world);
    describeInspection(world);
    describeWaits(world);
    describeFlights(world);
    describeClose(world);
  });
}
