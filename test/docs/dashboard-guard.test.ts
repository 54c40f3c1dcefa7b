import { join } from 'node:path';
import type { INestApplication, Type } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { BLOCKS, writeBlocks } from './support/compile.js';
import { readPages } from './support/markdown.js';
import { toModule } from './support/typescript-blocks.js';

const folder = join(BLOCKS, 'dashboard');
const PASSWORD = 'correct horse';
const PATHS = ['', '/page/board.js', '/api/board'];

/** The first block of docs/dashboard.md: a module whose dashboard has a guard. */
const block = readPages()
  .filter(({ path }) => path === 'docs/dashboard.md')
  .flatMap(({ blocks }) => blocks)
  .filter(({ code }) => code.includes('class AdminGuard'))
  .map(toModule)[0];

describe.each(['Express', 'Fastify'])('the guard of docs/dashboard.md on %s', (platform) => {
  let redis: RedisServer;
  let app: INestApplication;
  beforeAll(async () => {
    redis = await startRedis();
    const source = block!.source.replaceAll('redis://localhost:6379', redis.url);
    await writeBlocks([{ ...block!, source }], join(folder, platform));
    const { AppModule } = (await import(join(folder, platform, block!.file))) as { AppModule: Type };
    const module = await Test.createTestingModule({ imports: [AppModule] }).compile();
    app =
      platform === 'Express'
        ? module.createNestApplication({ logger: false })
        : module.createNestApplication(new FastifyAdapter() as never, { logger: false });
    await app.listen(0, '127.0.0.1');
  });
  beforeEach(() => {
    process.env.DASHBOARD_PASSWORD = PASSWORD;
  });
  afterAll(async () => {
    delete process.env.DASHBOARD_PASSWORD;
    await app?.close();
    await redis?.stop();
  });

  const get = async (path: string, credentials?: string) => {
    const headers: Record<string, string> =
      credentials === undefined ? {} : { authorization: `Basic ${btoa(credentials)}` };
    return fetch(`${await app.getUrl()}/admin/locks${path}`, { headers });
  };

  it('makes the browser ask for the password, and lets nobody in without it', async () => {
    for (const credentials of [undefined, 'admin:', 'admin:wrong', `root:${PASSWORD}`]) {
      for (const path of PATHS) {
        const answer = await get(path, credentials);
        expect(answer.status).toBe(401);
        expect(answer.headers.get('www-authenticate')).toBe('Basic realm="locks"');
      }
    }
  });

  it('serves the page and its data to those who know it', async () => {
    for (const path of PATHS) expect((await get(path, `admin:${PASSWORD}`)).status).toBe(200);
  });

  it('lets nobody in while no password is set', async () => {
    process.env.DASHBOARD_PASSWORD = '';
    for (const credentials of [undefined, 'admin:']) expect((await get('', credentials)).status).toBe(500);
  });
});
