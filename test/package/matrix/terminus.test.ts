import { AppWithRedis } from './app-with-redis.js';

const OTHERS = ['reflect-metadata', 'rxjs@7', '@types/node@22'];

describe.each([
  { version: 11, type: 'commonjs', packages: ['ioredis@5', 'typescript@5'] },
  { version: 12, type: 'module', packages: ['ioredis@6'] },
] as const)('the health indicator in an app with terminus $version', ({ version, type, packages }) => {
  const nest = ['common', 'core', 'platform-express', 'terminus'].map((name) => `@nestjs/${name}@${version}`);
  const world = new AppWithRedis({ type, packages: [...nest, ...packages, ...OTHERS] });

  it('compiles, is up while Redis answers, down while it does not, and up again', async () => {
    const { app, redis } = world;
    await app.compile('health.ts', { module: 'nodenext', skipLibCheck: true });
    const { url, pid } = redis;
    const up = { code: 200, status: 'up', problems: [] };
    expect(await app.run('health.js', { REDIS_URL: url, REDIS_PID: String(pid) })).toEqual({
      before: up,
      during: { code: 503, status: 'down', problems: [expect.stringContaining('no answer')] },
      after: up,
    });
  });
});
