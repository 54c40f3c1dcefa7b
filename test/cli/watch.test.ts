import { createLockService } from '../../lib/service/create-lock-service.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { startCli } from './run-cli.js';

describe('watch', () => {
  let redis: RedisServer;
  beforeEach(async () => {
    redis = await startRedis();
  });
  afterEach(() => redis.stop());

  it('shows the locks repeatedly, continues through an outage, and ends with 0 when it is interrupted', async () => {
    const locks = createLockService({ connection: redis.url, logger: { warn: () => {}, error: () => {} } });
    const lease = await locks.acquire('order:42');
    const child = startCli(['watch', '--interval', '200ms'], redis.url);
    const ended = new Promise((resolve) => child.once('close', resolve));
    let text = '';
    child.stdout.on('data', (data) => {
      text += data;
    });
    const shows = async (what: RegExp) => {
      text = '';
      await until(() => what.test(text), 30_000);
    };
    await shows(/1 locks held, 0 callers waiting\n\nNAME .*\norder:42 /);
    await lease.release();
    await shows(/0 locks held, 0 callers waiting\n\nNo lock is held\n/);
    await redis.kill();
    await shows(/Z {2}\S.*no answer/);
    await redis.start();
    await shows(/0 locks held/);
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    await locks.close();
  });

  it('ends when nobody reads any more', async () => {
    const child = startCli(['watch', '--interval', '200ms'], redis.url);
    const ended = new Promise((resolve) => child.once('close', resolve));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    child.stdout.destroy();
    expect(await ended).toBe(0);
  });
});
