import { type DashboardApp, openDashboard, type Platform } from './dashboard-app.js';

const RELEASE = { 'x-redis-lock-dashboard': 'release' };
const reason = 'the worker hangs since noon';

describe.each<Platform>(['Express', 'Fastify'])(
  'a release asked for on %s, whose CORS lets everybody in,',
  (platform) => {
    let app: DashboardApp | undefined;
    afterEach(async () => {
      await app?.close();
      app = undefined;
    });

    const open = async (origin?: string) => {
      app = await openDashboard({
        platform,
        dashboard: { readOnly: false, ...(origin === undefined ? {} : { origin }) },
        setUp: (nest) => nest.enableCors({ origin: true, credentials: true }),
      });
      await app.locks.acquire('order:42');
      return app;
    };

    const foreign: [string, (own: URL) => Record<string, string>][] = [
      ['a page of another site', () => ({ origin: 'https://evil.example' })],
      [
        'a page of another port of this host',
        ({ hostname, port }) => ({ origin: `http://${hostname}:${Number(port) ^ 1}` }),
      ],
      ['a page of another scheme', ({ hostname }) => ({ origin: `http://${hostname}` })],
      ['a page without an origin', () => ({ origin: 'null' })],
      ['an origin that is none', ({ host }) => ({ origin: host })],
      [
        'a page that says what a proxy would',
        () => ({ origin: 'https://evil.example', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' }),
      ],
      ['another site, as its browser says', ({ origin }) => ({ origin, 'sec-fetch-site': 'same-site' })],
      ['an extension of the browser', () => ({ origin: 'chrome-extension://abc', 'sec-fetch-site': 'none' })],
    ];

    it.each(foreign)('is refused to %s', async (_who, headers) => {
      const { url, locks, release } = await open().then((it) => ({
        url: it.url,
        locks: it.locks,
        release: it.release.bind(it),
      }));
      const answer = await release('order:42', { reason }, { ...RELEASE, ...headers(new URL(url)) });
      expect(answer).toMatchObject({
        status: 403,
        message: expect.stringMatching(/another origin; nothing was released/),
      });
      expect(await locks.isLocked('order:42')).toBe(true);
    });

    const own: [string, (own: URL) => Record<string, string>][] = [
      ['a script, which has no origin', () => ({})],
      ['the page', ({ origin }) => ({ origin })],
      ['the page behind a proxy that ends TLS', ({ origin }) => ({ origin: origin.replace('http:', 'https:') })],
      [
        'the page behind a proxy that changes the host, as its browser says',
        () => ({ origin: 'https://admin.example', 'sec-fetch-site': 'same-origin' }),
      ],
    ];

    it.each(own)('is granted to %s', async (_who, headers) => {
      const { url } = await open();
      const answer = await app!.release('order:42', { reason }, { ...RELEASE, ...headers(new URL(url)) });
      expect(answer).toEqual({ status: 200 });
    });

    it('is granted to the origin that the option names, and to no other', async () => {
      const { url } = await open('http://admin.example:8080');
      const host = 'admin.example:8080';
      const ask = (origin: string) => app!.release('order:42', { reason }, { ...RELEASE, host, origin });
      expect((await ask(new URL(url).origin)).status).toBe(403);
      expect((await ask('http://admin.example')).status).toBe(403);
      expect(await ask('http://admin.example:8080')).toEqual({ status: 200 });
    });
  },
);
