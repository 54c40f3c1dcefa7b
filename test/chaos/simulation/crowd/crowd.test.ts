import '../../../contract/support/matchers.js';
import { simulateCrowd } from './crowd-model.js';

const COSTS = {
  latency: 0.25,
  command: 0.02,
  place: 0.01,
  subscription: 0.01,
  write: 0.2,
  message: 0.02,
  answer: 0.05,
};

/** Only whole rounds are measured, so that every process can have the lock equally often. */
const crowdOf = (processes: number) =>
  simulateCrowd({ processes, costs: COSTS, hold: 5, bodies: 4 * processes, lease: 1_000 });

describe('the model of a crowd that waits for one lock', () => {
  it.each([10, 40])(
    'delivers each release to the first in line of %i processes, which begins at once',
    async (processes) => {
      const { each, jain } = (await crowdOf(processes)).steady;
      expect(each.messages).toBeCloseTo(1, 1);
      // It enters the line behind the others. When it is granted the lock, it begins, and it releases the lock.
      expect(each.attempts).toBeWithin(1, 1.1);
      expect(each.commands).toBeWithin(2, 2.2);
      expect(jain).toBeGreaterThan(0.99);
    },
  );

  it('hands over as fast among 40 processes as among 10, although writing a message takes long', async () => {
    const [few, many] = [await crowdOf(10), await crowdOf(40)];
    expect(many.steady.handOver - few.steady.handOver).toBeLessThan(COSTS.write);
  });

  it('counts the callers that give up, and lets them come back', async () => {
    const giveUp = { least: 30, most: 120, pause: 60 };
    const { steady } = await simulateCrowd({
      processes: 10,
      costs: COSTS,
      hold: 5,
      bodies: 200,
      lease: 1_000,
      giveUp,
    });
    expect(steady.refused).toBeGreaterThan(0.05);
    expect(steady.refused).toBeLessThan(0.6);
    expect(steady.jain).toBeGreaterThan(0.8);
  });

  it('serves the next one soon after the lease of a dead process has ended, with a few requests per process', async () => {
    const { recovery, recoveryCommands, processes } = await crowdOf(40);
    expect(recovery).toBeGreaterThan(-5);
    expect(recovery).toBeLessThan(100);
    expect(recoveryCommands).toBeLessThan(5 * processes);
  });
});
