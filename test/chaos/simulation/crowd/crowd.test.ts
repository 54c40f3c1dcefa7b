import { simulateCrowd } from './crowd-model.js';

const COSTS = { latency: 0.25, command: 0.02, write: 0.2, message: 0.02, answer: 0.05 };

/** Only whole rounds are measured, so that every process can have the lock equally often. */
const crowdOf = (processes: number, costs = COSTS, together = false) =>
  simulateCrowd({ processes, costs, together, hold: 5, bodies: 4 * processes, lease: 1_000 });

describe('the model of a crowd that waits for one lock', () => {
  it.each([10, 40])(
    'delivers each release to every one of %i processes, of which one asks for the lock',
    async (processes) => {
      const { each, jain } = (await crowdOf(processes, { ...COSTS, write: 0.01 })).steady;
      expect(each.messages).toBeCloseTo(processes, 0);
      expect(each.attempts).toBeGreaterThanOrEqual(1);
      expect(each.attempts).toBeLessThan(1.1);
      expect(each.commands).toBeLessThan(2.1);
      expect(jain).toBeGreaterThan(0.99);
    },
  );

  it('keeps the next one waiting while the server writes to all of them', async () => {
    const [few, many] = [await crowdOf(10), await crowdOf(40)];
    const longer = many.steady.handOver - few.steady.handOver;
    expect(longer).toBeGreaterThan(0.9 * 30 * COSTS.write);
    expect(longer).toBeLessThan(1.2 * 30 * COSTS.write);
    const free = { ...COSTS, write: 0 };
    expect((await crowdOf(40, free)).steady.handOver - (await crowdOf(10, free)).steady.handOver).toBeLessThan(0.5);
  });

  it('keeps services of one process waiting while it reads the messages of the others', async () => {
    const costs = { ...COSTS, write: 0, message: 0.2 };
    const [apart, together] = [await crowdOf(40, costs), await crowdOf(40, costs, true)];
    expect(together.steady.each.clients).toBeCloseTo(apart.steady.each.clients, 0);
    expect(together.steady.handOver).toBeGreaterThan(apart.steady.handOver + 10 * costs.message);
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
