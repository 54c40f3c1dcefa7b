import type { WaitBackend } from '../../../lib/backends/wait-backend.js';
import { BackendTime } from '../../../lib/engine/deadlock/backend-time.js';
import type { NestedWait } from '../../../lib/engine/deadlock/nested-wait.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('the time of a backend', () => {
  /** How far its clock is ahead of the clock of this process. */
  const AHEAD = 5_000;
  let runtime: VirtualRuntime;
  /** How many milliseconds the next answers take. */
  let delays: number[];
  let asked: string[];
  let time: BackendTime;
  beforeEach(() => {
    runtime = new VirtualRuntime();
    delays = [];
    asked = [];
    const backend = {
      clockOffset: async (holder: string) => {
        asked.push(holder);
        const delay = delays.shift() ?? 1;
        runtime.block(delay);
        return AHEAD + delay;
      },
    };
    time = new BackendTime(backend as unknown as WaitBackend, runtime);
  });

  const wait = (id = 'wait', owner?: string) => {
    const locks = owner === undefined ? [] : [{ owner }];
    return {
      id,
      since: runtime.monotonic(),
      began: undefined as number | undefined,
      locks,
      date(this: { began: number | undefined }, began: number) {
        this.began = began;
      },
    } as unknown as NestedWait;
  };

  it('is asked for once when the answer comes quickly', async () => {
    const waits = [wait('first', 'owner'), wait('second')];
    await time.date(waits);
    expect(asked).toEqual(['owner']);
    expect(waits.map(({ began }) => began)).toEqual([AHEAD + 1, AHEAD + 1]);
    expect(time.now()).toBe(runtime.monotonic() + AHEAD + 1);
  });

  it('is asked for under an owner of the caller, or under its wait if it holds nothing', async () => {
    await time.date([wait('first')]);
    await runtime.advance(10_000);
    await time.date([wait('second', 'owner'), wait('third')]);
    expect(asked).toEqual(['first', 'owner']);
  });

  it('is asked for at most every ten seconds', async () => {
    await time.date([wait()]);
    await runtime.advance(9_998);
    await time.date([wait()]);
    expect(asked).toHaveLength(1);
    await runtime.advance(2);
    await time.date([wait()]);
    expect(asked).toHaveLength(2);
  });

  it('is asked for again after a slow answer, and is that of the quickest one', async () => {
    delays = [400, 30, 200, 1];
    const one = wait();
    await time.date([one]);
    expect(asked).toHaveLength(3);
    expect(one.began).toBe(AHEAD + 30);
  });

  it('is not asked for a third time when the second answer comes quickly', async () => {
    delays = [400, 20];
    const one = wait();
    await time.date([one]);
    expect(asked).toHaveLength(2);
    expect(one.began).toBe(AHEAD + 20);
  });

  it('is asked for at most once in ten seconds, and only for waits that have no date', async () => {
    const one = wait();
    await time.date([one]);
    await runtime.advance(9_000);
    const two = wait();
    await time.date([one, two]);
    expect(asked).toHaveLength(1);
    expect([one.began, two.began]).toEqual([AHEAD + 1, AHEAD + 1 + two.since]);
    await runtime.advance(2_000);
    await time.date([one, two]);
    expect(asked).toHaveLength(1);
    await time.date([wait()]);
    expect(asked).toHaveLength(2);
  });
});
