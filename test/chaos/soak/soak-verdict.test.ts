import type { Outcome, ProcessSample } from './soak-run.js';
import { verdictOf } from './soak-verdict.js';

const MINUTE = 60_000;

/** The samples of one process, one each minute, where `value` returns what differs from a process that is flat. */
function samplesOf(
  process: string,
  minutes: readonly [from: number, to: number],
  value: (minute: number) => Partial<ProcessSample> = () => ({}),
): ProcessSample[] {
  const [from, to] = minutes;
  return Array.from({ length: to - from + 1 }, (_, i) => ({
    at: (from + i) * MINUTE,
    process,
    resting: true,
    heap: 20e6,
    external: 2e6,
    resident: 100e6,
    handles: 25,
    sockets: 5,
    timers: 10,
    cpu: 0,
    ...value(from + i),
  }));
}

function outcome(samples: readonly ProcessSample[], more: Partial<Outcome> = {}): Outcome {
  const counts = { served: 10_000, refused: 0, lost: 0, flights: 0, chapters: 60 };
  return { began: 0, samples, server: [], faults: [], counts, violations: [], broken: [], ...more };
}

const complaints = (samples: readonly ProcessSample[], more?: Partial<Outcome>) =>
  verdictOf(outcome(samples, more), 60 * MINUTE).complaints;

describe('the verdict of a soak of an hour', () => {
  it('accepts processes that are flat after ten minutes, and what one of them does before', () => {
    const warming = samplesOf('p1.1', [0, 60], (minute) => ({ heap: 20e6 + Math.min(minute, 10) * 1e6 }));
    expect(complaints([...warming, ...samplesOf('p2.2', [0, 60])])).toEqual([]);
  });

  it.each([
    ['heap', 'heap', 20e6, 1.07],
    ['external memory', 'external', 20e6, 1.07],
    ['handles', 'handles', 25, 1.09],
    ['timers', 'timers', 100, 1.3],
  ] as const)('complains about %s that grow by more than the limit', (what, field, at, factor) => {
    const grows = samplesOf('p1.1', [0, 60], (minute) => ({ [field]: at * (1 + ((factor - 1) * minute) / 45) }));
    expect(complaints(grows)).toEqual([expect.stringMatching(`^not flat: ${what} of p1.1`)]);
  });

  it('accepts single high samples, such as of a process that was still busy', () => {
    const spikes = samplesOf('p1.1', [0, 60], (minute) => ({ heap: minute % 5 === 0 ? 40e6 : 20e6 }));
    expect(complaints(spikes)).toEqual([]);
  });

  it('compares a process that was started later from ten minutes after its own start', () => {
    const late = (growth: number) =>
      samplesOf('p3.7', [20, 60], (minute) => ({ heap: 20e6 + Math.min(minute - 20, 10) * 1e6 + growth * minute }));
    expect(complaints([...samplesOf('p1.1', [0, 60]), ...late(0)])).toEqual([]);
    expect(complaints([...samplesOf('p1.1', [0, 60]), ...late(0.1e6)])).toHaveLength(1);
  });

  it('complains if nothing could be compared, or if there was hardly a call', () => {
    expect(complaints(samplesOf('p1.1', [0, 12]))).toEqual([expect.stringMatching('too short')]);
    const counts = { served: 100, refused: 0, lost: 0, flights: 0, chapters: 60 };
    expect(complaints(samplesOf('p1.1', [0, 60]), { counts })).toEqual([expect.stringMatching('prove little')]);
  });

  it('ignores what was measured while calls were under way', () => {
    const busy = samplesOf('p1.1', [0, 60], (minute) => ({ heap: 20e6 + minute * 1e6, resting: false }));
    expect(complaints([...busy, ...samplesOf('p1.1', [0, 60])])).toEqual([]);
  });

  it('repeats what checkers found', () => {
    const found = complaints(samplesOf('p1.1', [0, 60]), { violations: ['chapter 3: no overlap'] });
    expect(found).toEqual(['chapter 3: no overlap']);
  });
});
