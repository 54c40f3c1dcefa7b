import { type DynamicModule, Module } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { RedisLockDashboardModule } from '../../lib/dashboard.js';
import { LockConfigurationError, RedisLockModule } from '../../lib/index.js';
import { type DashboardApp, openDashboard, PassGuard, type Platform } from './dashboard-app.js';

it('tells the modules of two dashboards apart by their text, as NestJS 10 does', () => {
  const [one, other] = ['locks', 'admin/locks'].map((path) => RedisLockDashboardModule.forRoot({ path, public: true }));
  const text = ({ providers }: DynamicModule) =>
    JSON.stringify(providers, (_key, value) => (typeof value === 'function' ? String(value) : value));
  expect(text(one)).not.toBe(text(other));
});

describe.each<Platform>(['Express', 'Fastify'])('the place of a dashboard on %s', (platform) => {
  let app: DashboardApp | undefined;
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  it.each(['/admin/locks/', 'locks', 'a.b/c~d/e-f_1'])('may be %s', async (path) => {
    app = await openDashboard({ platform, dashboard: { path } });
    const url = app.url.replace('admin/locks', path.replace(/^\/|\/$/g, ''));
    const page = await fetch(url);
    expect(page.status).toBe(200);
    const [, script] = (await page.text()).match(/<script type="module" src="([^"]+)"/) as RegExpMatchArray;
    expect((await fetch(new URL(script, url))).headers.get('content-type')).toMatch(/^text\/javascript/);
    expect((await fetch(`${url}/api/board`)).status).toBe(200);
  });

  it('may be requested with a query, and on Express with a slash at its end', async () => {
    app = await openDashboard({ platform });
    // For Fastify, a path with a slash at its end is a different one unless ignoreTrailingSlash is set.
    const ends = platform === 'Express' ? ['?from=runbook', '/', '/?from=runbook'] : ['?from=runbook'];
    for (const end of ends) {
      const url = app.url + end;
      const page = await fetch(url);
      expect(page.status).toBe(200);
      const [, script] = (await page.text()).match(/<script type="module" src="([^"]+)"/) as RegExpMatchArray;
      expect((await fetch(new URL(script, url))).headers.get('content-type')).toMatch(/^text\/javascript/);
    }
  });

  it('is that of one dashboard: another at the same path is refused at the start', async () => {
    @Module({
      imports: [
        RedisLockModule.forRoot({ backend: 'memory', logger: { warn() {}, error() {} } }),
        RedisLockDashboardModule.forRoot({ path: 'admin/locks', public: true }),
        RedisLockDashboardModule.forRoot({ path: '/admin/locks/', guards: [PassGuard], readOnly: false }),
      ],
    })
    class App {}
    const start = async () => {
      const module = await Test.createTestingModule({ imports: [App] }).compile();
      const nest =
        platform === 'Express' ? module.createNestApplication() : module.createNestApplication(new FastifyAdapter());
      await nest.init().finally(() => nest.close());
    };
    await expect(start()).rejects.toThrow(LockConfigurationError);
    await expect(start()).rejects.toThrow(/two dashboards of this application have the path '\/?admin\/locks\/?'/);
  });

  it('is imported by several modules as one', async () => {
    const dashboard = RedisLockDashboardModule.forRoot({ path: 'locks', public: true });
    @Module({ imports: [dashboard] })
    class Admin {}
    @Module({
      imports: [RedisLockModule.forRoot({ backend: 'memory', logger: { warn() {}, error() {} } }), dashboard, Admin],
    })
    class App {}
    const module = await Test.createTestingModule({ imports: [App] }).compile();
    await module.close();
  });

  it('is one of several in an application: each has its own guards and form', async () => {
    @Module({
      imports: [
        RedisLockModule.forRoot({ backend: 'memory', logger: { warn() {}, error() {} } }),
        RedisLockDashboardModule.forRoot({ path: 'locks', public: true }),
        RedisLockDashboardModule.forRoot({ path: 'admin/locks', guards: [PassGuard], readOnly: false }),
      ],
    })
    class App {}
    const module = await Test.createTestingModule({ imports: [App] }).compile();
    const nest =
      platform === 'Express' ? module.createNestApplication() : module.createNestApplication(new FastifyAdapter());
    await nest.listen(0, '127.0.0.1');
    try {
      const url = await nest.getUrl();
      const board = async (path: string) =>
        (await fetch(`${url}/${path}/api/board`, { headers: { 'x-pass': 'let me in' } })).json();
      expect(await board('locks')).toMatchObject({ readOnly: true });
      expect(await board('admin/locks')).toMatchObject({ readOnly: false });
      expect((await fetch(`${url}/locks`)).status).toBe(200);
      expect((await fetch(`${url}/admin/locks`)).status).toBe(401);
    } finally {
      await nest.close();
    }
  });
});
