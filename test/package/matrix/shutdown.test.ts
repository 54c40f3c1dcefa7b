import { AppWithRedis } from './app-with-redis.js';

const RUN_TIMEOUT = 240_000;

/** How the work of one application ended. */
interface Ended {
  /** How often each outcome occurred. */
  readonly ended: Record<string, unknown>;
  /** Seconds. */
  readonly took: number;
  /** What the application has logged as an error. */
  readonly errors: 0 | string;
}

/** What order.mjs prints. */
interface Placed extends Ended {
  readonly closedUnder: number;
  readonly after: string;
}

/** What has to become of each kind of work, and in how many seconds the application has to be closed. */
const EXPECTED: Record<string, { readonly within: number } & Record<string, unknown>> = {
  'requests, Express': { ended: { 200: 10 }, charged: 10, written: 10, within: 10 },
  'requests, Fastify': { ended: { 200: 10 }, charged: 10, written: 10, within: 10 },
  'kept-alive clients and SSE, Express': { ended: { 200: 1 }, written: 1, within: 10 },
  'kept-alive clients and SSE, Fastify': { ended: { 200: 1 }, written: 1, within: 10 },
  'a request behind another pod, Express': {
    ended: { 'given back': { 200: 1 }, 'not given back': { 503: 1 } },
    within: 10,
  },
  'a request behind another pod, Fastify': {
    ended: { 'given back': { 200: 1 }, 'not given back': { 503: 1 } },
    within: 10,
  },
  'jobs of BullMQ': { ended: { completed: 1, failed: 0, waiting: 50, active: 0 }, within: 5 },
  'a long job of BullMQ': { ended: { completed: 1, failed: 0, twoInside: 0 }, within: 12 },
  microservice: { ended: { handled: 6, lost: 0 }, within: 5 },
  cron: { ended: { runs: 0 }, within: 3 },
  'a queue in the process': { ended: { done: 5 }, within: 3 },
  semaphores: { ended: { sent: 6 }, within: 3 },
  flights: { ended: { rates: 4 }, within: 3 },
  newest: { ended: { LockSupersededError: 2, indexed: 1 }, within: 3 },
  leaders: { ended: { 'taken over': true }, within: 3 },
  'without Nest': { ended: { own: { done: 3 }, 'behind another process': { LockAbortedError: 1 } }, within: 3 },
  idle: { ended: {}, within: 1 },
};

describe.each([
  { nest: 10, schedule: 4 },
  { nest: 11, schedule: 6 },
  { nest: 12, schedule: 12 },
])('a shutdown with NestJS $nest', ({ nest, schedule }) => {
  const own = ['common', 'core', 'platform-express', 'platform-fastify', 'microservices', 'bullmq'];
  const others = [`@nestjs/schedule@${schedule}`, 'bullmq@5', 'ioredis@5', 'reflect-metadata', 'rxjs@7'];
  const packages = [...own.map((name) => `@nestjs/${name}@${nest}`), ...others];
  const world = new AppWithRedis({ type: 'module', packages });
  beforeAll(() => world.app.add('shutdown'));

  it(
    'lets bodies end before the last hooks of all other modules, and grants locks in them, wherever RedisLockModule is imported',
    async () => {
      const places = JSON.parse(await world.app.node(['order.mjs'])) as Record<string, Placed>;
      expect(Object.keys(places).length).toBeGreaterThanOrEqual(12);
      for (const [place, { ended, closedUnder, after }] of Object.entries(places))
        expect([place, Object.keys(ended), closedUnder, after]).toEqual([place, ['granted'], 0, 'LockAbortedError']);
    },
    RUN_TIMEOUT,
  );

  it(
    'lets everything end that was begun',
    async () => {
      const { app, redis } = world;
      const kinds = JSON.parse(await app.node(['kinds.mjs'], { REDIS_URL: redis.url })) as Record<string, Ended>;
      const rows = Object.entries(kinds).map(([kind, { ended, took, errors }]) => [
        kind,
        JSON.stringify(ended),
        took,
        errors,
      ]);
      console.log(`NestJS ${app.version('@nestjs/core')}\n${rows.map((row) => row.join(' | ')).join('\n')}`);
      expect(Object.keys(kinds)).toEqual(Object.keys(EXPECTED));
      for (const [kind, { within, ...expected }] of Object.entries(EXPECTED)) {
        const { took, ...result } = kinds[kind];
        expect({ kind, ...result }).toEqual({ kind, ...expected, errors: 0 });
        expect(took).toBeLessThan(within);
      }
    },
    RUN_TIMEOUT,
  );
});
