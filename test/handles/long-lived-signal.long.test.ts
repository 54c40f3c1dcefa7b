import { startProcess } from '../support/processes/start-process.js';

describe('a signal that lives as long as the application', () => {
  it('keeps nothing of the thousands of calls that it is given to', async () => {
    const { line } = await startProcess('signal-user.ts');
    const growth: Record<string, number> = JSON.parse(line);
    // AbortSignal.any() left 30 to 65 bytes a call on Node.js 20.
    expect(Object.entries(growth).filter(([, bytes]) => bytes > 15)).toEqual([]);
    expect(Object.keys(growth)).toHaveLength(5);
  }, 300_000); // memory runs the scripts, which takes its time on a busy machine
});
