import { AppWithRedis } from './app-with-redis.js';

const RUN_TIMEOUT = 240_000;

/** What clients of two replicas get: each row of the table in docs/idempotency.md, and faults. */
const EXPECTED = {
  documented: 'Idempotency-Key,201,400,409,422',
  'without a key': '400',
  repeated: '201, 201 replayed, 201 replayed, 1 bodies, 1 runs',
  'an error of 402': '402, 402 replayed, 402 replayed, 1 bodies, 1 runs',
  'an error of 429': '429, 429, 429, 1 bodies, 3 runs',
  'an error of 500': '500, 500, 500, 1 bodies, 3 runs',
  'inner serializer': '201, 201 replayed, 201 replayed, 1 bodies, 0 runs',
  'outer serializer': '500, 409, 409, 2 bodies, 1 runs',
  first: '201',
  'another body': '422',
  'another path': '422',
  'another user': '201',
  '200 at once': '1 answer, 1 run, 199 replayed',
  'while it runs': '201, 201 replayed',
  'killed in the middle': { answers: 'no answer, 201, 201 replayed', waitedForTheLease: true },
  'killed before sending': 'no answer, 201 replayed, 1 run',
  stopped: { answers: '201, 201, 201 replayed', keptThatOfTheSecond: true, warned: true },
};

describe.each([
  { nest: 10, swagger: 8 },
  { nest: 11, swagger: 11 },
  { nest: 12, swagger: 12 },
])('@Idempotent with NestJS $nest', ({ nest, swagger }) => {
  const own = ['common', 'core', 'platform-express', 'platform-fastify'].map((name) => `@nestjs/${name}@${nest}`);
  const others = ['class-transformer', 'ioredis@5', 'reflect-metadata', 'rxjs@7'];
  const world = new AppWithRedis({ type: 'module', packages: [...own, `@nestjs/swagger@${swagger}`, ...others] });

  it(
    'gives two replicas one run and one answer, also when one of them is killed or stopped',
    async () => {
      const { app, redis } = world;
      expect(await app.run('idempotency.mjs', { REDIS_URL: redis.url })).toEqual({
        Express: EXPECTED,
        Fastify: EXPECTED,
      });
    },
    RUN_TIMEOUT,
  );
});
