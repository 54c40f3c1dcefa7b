import { type DashboardApp, type DashboardAppOptions, openDashboard } from '../dashboard/dashboard-app.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { Viewer } from './viewer.js';

/** What the tests of a `describe` share. */
interface Board {
  viewer: Viewer;
  /** The application of the current test. */
  app: DashboardApp;
}

/**
 * Starts a browser, and before each test an application with a dashboard. A test fails if its pages have logged an
 * error.
 */
export function useBoard(optionsOf: () => DashboardAppOptions): Readonly<Board> {
  const board = {} as Board;
  beforeAll(async () => {
    board.viewer = await Viewer.start();
  });
  beforeEach(async () => {
    board.app = await openDashboard(optionsOf());
  });
  afterEach(async () => {
    await board.app.close();
    expect(board.viewer.errors.splice(0)).toEqual([]);
  });
  afterAll(() => board.viewer.close());
  return board;
}

/** As {@link useBoard}, with a Redis that is emptied after each test. */
export function useBoardOnRedis(optionsOf: (redis: RedisServer) => DashboardAppOptions) {
  const started = {} as { redis: RedisServer };
  beforeAll(async () => {
    started.redis = await startRedis();
  });
  const board = useBoard(() => optionsOf(started.redis));
  afterEach(() => started.redis.client().flushall());
  afterAll(() => started.redis.stop());
  return { board, started };
}
