import { itHolds, simulate } from '../run-schedules.js';

describe('the engine, when requests arrive after their callers have left', () => {
  itHolds('leaves no lock that nobody holds', 'lateRequests', ['granted', 'refused']);

  it('leaves some if the server executes such requests', async () => {
    const explanations: string[] = [];
    for (let seed = 1; seed <= 60; seed++) {
      const { verdict } = await simulate(seed, { kind: 'lateRequests', executesLate: true });
      explanations.push(verdict.explanation);
    }
    expect(explanations.join('\n')).toMatch(/server has left \d+ (locks|queues|announced writers)/);
  });
});
