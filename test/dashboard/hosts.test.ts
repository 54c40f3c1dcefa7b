import { connect, constants } from 'node:http2';
import {
  type DashboardApp,
  type DashboardAppOptions,
  openDashboard,
  PassGuard,
  type Platform,
} from './dashboard-app.js';

const RELEASE = { 'x-redis-lock-dashboard': 'release' };
const reason = 'the worker hangs since noon';
const MISDIRECTED = 421;

/** A page whose name the attacker's DNS server has changed to the address of the dashboard. */
const REBOUND = { host: 'evil.example:3000' };

describe.each<Platform>(['Express', 'Fastify'])('a dashboard on %s', (platform) => {
  let app: DashboardApp | undefined;
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  const open = async (dashboard: DashboardAppOptions['dashboard']) => {
    app = await openDashboard({ platform, dashboard: { readOnly: false, ...dashboard } });
    await app.locks.acquire('order:42');
    return app;
  };
  const statuses = async (headers: Record<string, string>) => {
    const paths = ['', '/page/board.js', '/api/board', '/api/stream'];
    const answers = await Promise.all(paths.map((path) => app!.get(path, headers)));
    await Promise.all(answers.map(({ body }) => body?.cancel()));
    const { status } = await app!.release('order:42', { reason }, { ...RELEASE, ...headers });
    return [...answers.map((answer) => answer.status), status];
  };
  const REFUSED = Array(5).fill(MISDIRECTED);
  const SERVED = Array(5).fill(200);

  it('with an origin is served under that host, and under no other: not its data, and no release', async () => {
    await open({ origin: 'http://admin.example:8080' });
    const page = { origin: 'http://evil.example:3000', 'sec-fetch-site': 'same-origin' };
    for (const host of ['evil.example:3000', 'admin.example', '127.0.0.1:8080', 'admin.example:8080@evil.example'])
      expect([host, await statuses({ ...page, host })]).toEqual([host, REFUSED]);
    expect(await app!.locks.isLocked('order:42')).toBe(true);
    expect(await statuses({ host: 'Admin.example:8080' })).toEqual(SERVED);
  });

  it('behind a proxy that ends TLS knows its host with and without the port', async () => {
    await open({ origin: 'https://admin.example' });
    for (const host of ['admin.example', 'admin.example:443']) expect((await app!.get('', { host })).status).toBe(200);
    expect((await app!.get('', { host: 'admin.example:80' })).status).toBe(MISDIRECTED);
  });

  it('takes several origins, one for each name', async () => {
    await open({ origin: ['https://admin.example', 'http://10.0.0.7:3000'] });
    const asked = ['admin.example', '10.0.0.7:3000', 'evil.example'].map((host) => app!.get('/api/board', { host }));
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, MISDIRECTED]);
  });

  it('compares the origin first, whatever the browser says of the site', async () => {
    await open({ origin: 'http://admin.example:8080' });
    const headers = { host: 'admin.example:8080', origin: 'http://evil.example', 'sec-fetch-site': 'same-origin' };
    expect((await app!.release('order:42', { reason }, { ...RELEASE, ...headers })).status).toBe(403);
  });

  it('that is public is served under addresses and localhost, and under listed names only', async () => {
    const { url } = await open({});
    const { port } = new URL(url);
    expect(await statuses(REBOUND)).toEqual(REFUSED);
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'shop.localhost', `[::1]:${port}`, '192.168.1.7'])
      expect([host, (await app!.get('', { host })).status]).toEqual([host, 200]);
    for (const host of ['localhost.evil.example', '127.0.0.1.evil.example', 'evil-localhost', '1.evil'])
      expect([host, (await app!.get('', { host })).status]).toEqual([host, MISDIRECTED]);
  });

  it('says which option admits a host', async () => {
    await open({});
    const { message } = (await (await app!.get('', REBOUND)).json()) as { message: string };
    expect(message).toMatch(/not served under this host.*option origin of RedisLockDashboardModule/);
  });

  it('behind guards, without an origin, leaves hosts to the guards', async () => {
    await open({ public: false, guards: [PassGuard] });
    expect((await app!.get('', { ...REBOUND, 'x-pass': 'let me in' })).status).toBe(200);
    expect((await app!.get('', REBOUND)).status).toBe(401);
  });
});

it('a dashboard with HTTP/2 reads the host from the request line', async () => {
  const app = await openDashboard({ platform: 'HTTP/2' });
  const client = connect(new URL(app.url).origin);
  try {
    const statusOf = (authority: string) =>
      new Promise((resolve, reject) => {
        const stream = client.request({ ':path': '/admin/locks', ':authority': authority });
        stream.on('response', (headers) => resolve(headers[constants.HTTP2_HEADER_STATUS])).on('error', reject);
        stream.resume();
      });
    expect(await Promise.all(['localhost', 'evil.example'].map(statusOf))).toEqual([200, MISDIRECTED]);
  } finally {
    client.close();
    await app.close();
  }
});
