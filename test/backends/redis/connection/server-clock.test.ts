import { ServerClock } from '../../../../lib/backends/redis/connection/server-clock.js';
import '../../../contract/support/matchers.js';

describe('the clock of a server', () => {
  const socket = {};
  const WALL = 1_700_000_000_000;
  /** The server's clock shows 5,000 ms more than the monotonic clock of this process. */
  const AHEAD = 5_000;

  const sampled = (sentAt = 1_000, tripTime = 4, wallAhead: number | undefined = WALL) => {
    const clock = new ServerClock();
    clock.sample(Math.floor(sentAt + tripTime / 2 + AHEAD), sentAt, sentAt + tripTime, socket, wallAhead);
    return clock;
  };

  it('tells of a time of the server a moment that is not later, by a little more than a round trip', () => {
    const moment = sampled().momentOf(AHEAD + 2_000, 2_001);
    expect(moment?.monotonic).toBeWithin(2_000 - 2 - 1 - 1.1, 2_000 - 2);
    expect(moment?.wall).toBeCloseTo(WALL + (moment?.monotonic as number), 3);
  });

  it('is less certain of its moments as time goes on, because the clocks drift apart', () => {
    const clock = sampled();
    const early = clock.momentOf(AHEAD + 2_000, 2_001)?.monotonic as number;
    const late = clock.momentOf(AHEAD + 32_000, 32_001)?.monotonic as number;
    expect(late - early).toBeWithin(30_000 - 31, 30_000 - 29);
  });

  it('uses the sample that says most', () => {
    const clock = sampled(1_000, 400);
    clock.sample(AHEAD + 3_001, 3_000, 3_002, socket, WALL);
    clock.sample(AHEAD + 4_100, 4_000, 4_200, socket, WALL);
    expect(clock.momentOf(AHEAD + 5_000, 5_001)?.monotonic).toBeWithin(4_990, 4_999);
  });

  it('tells no moment without a sample of both clocks of this process', () => {
    const clock = new ServerClock();
    clock.sample(AHEAD + 1_002, 1_000, 1_004, socket);
    expect(clock.isKnown).toBe(true);
    expect(clock.momentOf(AHEAD + 2_000, 2_001)).toBeUndefined();
  });

  it('tells no moment after a reconnect or a failover', () => {
    const clock = sampled();
    clock.forget();
    expect(clock.momentOf(AHEAD + 2_000, 2_001)).toBeUndefined();
    const replaced = sampled();
    replaced.sample(AHEAD - 300, 1_500, 1_504, {}, WALL);
    expect(replaced.momentOf(AHEAD, 2_001)?.monotonic).toBeWithin(1_700, 1_800);
  });

  it('forgets what it knew when an answer shows that the clock of the server was advanced', () => {
    const clock = sampled();
    clock.sample(AHEAD + 400 + 2_001, 2_000, 2_002, socket, WALL);
    // Otherwise the moment would seem to be 400 ms later than it was.
    expect(clock.momentOf(AHEAD + 400 + 3_000, 3_001)?.monotonic).toBeWithin(2_990, 3_000);
  });

  it('shows on the wall clock that the machine was suspended after the sample', () => {
    const clock = sampled();
    const moment = clock.momentOf(AHEAD + 2_000, 2_001);
    // Suspended for 10 s: at 2,010 on the monotonic clock, the wall clock has gained 10 s.
    const age = WALL + 2_010 + 10_000 - (moment?.wall as number);
    expect(age).toBeGreaterThan(10_000);
  });
});
