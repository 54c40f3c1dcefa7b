import type { ServerResponse } from 'node:http';
import { takeSnapshot } from '../../lib/dashboard/take-snapshot.js';
import type { ListedLock, LockService } from '../../lib/index.js';
import { until } from '../support/until.js';
import { type DashboardApp, openDashboard } from './dashboard-app.js';

const VIEWERS = 100;

/** The number of locks that another process holds. */
function listed(count: number): ListedLock[] {
  const client = {
    clientId: 'c',
    application: 'shop-1',
    host: 'web-7',
    pid: 4242,
    version: '',
    group: '',
    method: 'A.b',
  };
  return Array.from({ length: count }, (_, n) => ({
    name: `order:${n}`,
    type: 'exclusive' as const,
    owners: [{ owner: `c:${n}`, mine: false, remainingTime: 30_000, client }],
    remainingTime: 30_000,
    waiting: 0,
    line: [],
  }));
}

describe('the event loop of an application with a dashboard', () => {
  let app: DashboardApp | undefined;
  const viewers: AbortController[] = [];
  afterEach(async () => {
    for (const viewer of viewers.splice(0)) viewer.abort();
    await app?.close();
    app = undefined;
  });

  /** An application with these locks, and viewers of it who search for something. */
  async function look(locks: readonly ListedLock[], search: (n: number) => string, write: () => void) {
    app = await openDashboard({
      setUp: (nest) =>
        nest.use((_request: unknown, response: ServerResponse, next: () => void) => {
          const original = response.write.bind(response) as (data: string) => boolean;
          response.write = (data: string) => {
            if (data.includes('"seen"')) write();
            return original(data);
          };
          next();
        }),
    });
    app.locks.list = async () => ({ locks, synchronizers: [], results: [], cursor: undefined });
    for (let n = 0; n < VIEWERS; n++) {
      const viewer = new AbortController();
      viewers.push(viewer);
      void fetch(`${app.url}/api/stream?search=${search(n)}`, viewer)
        .then((response) => response.text())
        .catch(() => {});
    }
  }

  it('runs other work between viewers who each search for something else', async () => {
    let turn = 0;
    const counting = setInterval(() => turn++, 0);
    let rounds: number[][] = [];
    try {
      let last = performance.now();
      // The viewers get one snapshot a second, so a pause separates the rounds.
      await look(
        listed(5_000),
        (n) => `order:${n}`,
        () => {
          if (performance.now() - last > 300) rounds.push([]);
          last = performance.now();
          rounds.at(-1)?.push(turn);
        },
      );
      rounds = [];
      await until(() => rounds.filter((round) => round.length >= VIEWERS).length > 1, 60_000);
      const turns = rounds.filter((round) => round.length >= VIEWERS).map((round) => new Set(round).size);
      expect(Math.min(...turns)).toBeGreaterThan(2);
    } finally {
      clearInterval(counting);
    }
  });

  it('searches once for all viewers who search for the same', async () => {
    const locks = listed(500);
    const lower = String.prototype.toLowerCase;
    let texts = 0;
    let written = 0;
    String.prototype.toLowerCase = function () {
      if (this.startsWith('order:')) texts++;
      return lower.call(this);
    };
    try {
      await look(
        locks,
        () => 'order:1',
        () => written++,
      );
      await until(() => written >= VIEWERS, 60_000);
      [texts, written] = [0, 0];
      await until(() => written >= VIEWERS * 3, 60_000);
      // The text of a lock is made once per snapshot, not once per viewer.
      expect(texts / locks.length).toBeLessThan(VIEWERS / 4);
    } finally {
      String.prototype.toLowerCase = lower;
    }
  });

  it('compares thousands of clients with those of the snapshot before by their ids, not each with each', async () => {
    let asked = 0;
    const countIds = <T extends { clientId: string }>(client: T): T => {
      const { clientId } = client;
      return Object.defineProperty({ ...client }, 'clientId', {
        enumerable: true,
        get: () => {
          asked++;
          return clientId;
        },
      });
    };
    const clients = Array.from({ length: 2_000 }, (_, n) => ({ clientId: `client-${n}`, waiting: 0, waits: [] }));
    const locks = {
      list: async () => ({ locks: [], synchronizers: [], results: [] }),
      clients: async () => clients,
    } as unknown as LockService;
    const first = await takeSnapshot(locks, undefined);
    const second = await takeSnapshot(locks, { ...first, clients: first.clients.map(countIds) });
    expect(second.clients).toHaveLength(clients.length);
    expect(asked).toBeLessThan(clients.length * 10);
  });
});
