import { setTimeout as sleep } from 'node:timers/promises';
import type { Snapshot } from '../../lib/dashboard/board-snapshot.js';
import { SnapshotFeed } from '../../lib/dashboard/snapshot-feed.js';
import { until } from '../support/until.js';

const SNAPSHOT: Snapshot = {
  at: 1,
  took: 1,
  locks: [],
  synchronizers: [],
  results: [],
  clients: [],
  incomplete: false,
  outage: null,
};

describe('the feed of snapshots', () => {
  let feed: SnapshotFeed;
  afterEach(() => feed.close());

  it('passes each snapshot on once, however many viewers come and go', async () => {
    let taken = 0;
    feed = new SnapshotFeed(async () => {
      taken++;
      await sleep(100);
      return { ...SNAPSHOT, at: taken };
    });
    // Each viewer leaves while a snapshot is being taken, and the next one arrives.
    for (let n = 1; n <= 4; n++) {
      const stop = feed.follow(() => {});
      await until(() => taken === n * 2);
      stop();
    }
    const told: number[] = [];
    feed.follow(({ at }) => told.push(at));
    await until(() => told.length >= 4);
    await sleep(300);
    expect(told).toEqual([...new Set(told)]);
  });

  it('takes none when nobody watches any more', async () => {
    let taken = 0;
    feed = new SnapshotFeed(async () => {
      taken++;
      return SNAPSHOT;
    });
    const stop = feed.follow(() => {});
    await until(() => taken === 2);
    stop();
    await sleep(2_500);
    expect(taken).toBe(2);
  });

  it('rests after a snapshot that took long, but not after one that failed', async () => {
    const started: number[] = [];
    let fails = true;
    feed = new SnapshotFeed(async () => {
      started.push(performance.now());
      await sleep(1_500, undefined, { ref: false });
      if (fails) throw new Error('no answer');
      return SNAPSHOT;
    });
    feed.follow(() => {});
    await until(() => started.length === 2);
    fails = false;
    await until(() => started.length === 3, 30_000);
    const [failed, taken] = [started[1] - started[0], started[2] - started[1]];
    expect(taken).toBeGreaterThan(7_000);
    expect(failed).toBeLessThan(taken - 3_000);
  });
});
