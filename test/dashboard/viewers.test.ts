import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../support/until.js';
import { type DashboardApp, type DashboardAppOptions, openDashboard, type Platform } from './dashboard-app.js';

let app: DashboardApp | undefined;
const open = async (options?: DashboardAppOptions) => {
  app = await openDashboard(options);
  return app;
};
afterEach(async () => {
  await app?.close();
  app = undefined;
});

/** Counts the snapshots that are taken. */
function countSnapshots({ locks }: DashboardApp): { taken: number } {
  const count = { taken: 0 };
  const list = locks.list.bind(locks);
  locks.list = (options) => {
    count.taken++;
    return list(options);
  };
  return count;
}

/** Expects that without viewers nothing is read any more. */
async function expectQuiet(count: { taken: number }): Promise<void> {
  await until(async () => {
    const before = count.taken;
    await sleep(2_500);
    return count.taken === before;
  });
}

/** Requests the stream by a separate socket. */
function askForStream(url: string, method = 'GET'): Socket {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  socket.write(`${method} ${pathname}/api/stream HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
  return socket;
}

describe.each<Platform>(['Express', 'Fastify'])('viewers of the dashboard on %s', (platform) => {
  it('leave nothing behind when they go', async () => {
    const dashboard = await open({ platform });
    const count = countSnapshots(dashboard);
    const viewers = Array.from({ length: 40 }, () => askForStream(dashboard.url));
    let seen = 0;
    for (const viewer of viewers) viewer.once('data', () => seen++);
    await until(() => seen === viewers.length);
    await until(() => count.taken > 1);
    for (const viewer of viewers) viewer.destroy();
    await expectQuiet(count);
  });

  it('have a hundred streams at most; one more is told to ask instead', async () => {
    const { url } = await open({ platform });
    const viewers = Array.from({ length: 100 }, () => askForStream(url));
    let seen = 0;
    for (const viewer of viewers) viewer.once('data', () => seen++);
    await until(() => seen === viewers.length);
    const refused = await fetch(`${url}/api/stream`);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({
      message: expect.stringMatching(/100 streams already: ask for api\/board/),
    });
    expect((await fetch(`${url}/api/board`)).status).toBe(200);
    viewers[0].destroy();
    await until(async () => {
      const stop = new AbortController();
      const { status } = await fetch(`${url}/api/stream`, { signal: stop.signal });
      stop.abort();
      return status === 200;
    });
    for (const viewer of viewers) viewer.destroy();
  });

  it('do not include who asks for HEAD of the stream', async () => {
    const dashboard = await open({ platform });
    const count = countSnapshots(dashboard);
    const heads = Array.from({ length: 100 }, () => askForStream(dashboard.url, 'HEAD'));
    const answers = heads.map(
      (socket) => new Promise<string>((resolve) => socket.once('data', (data) => resolve(`${data}`))),
    );
    for (const answer of await Promise.all(answers)) {
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
      expect(answer).toMatch(/content-type: text\/event-stream/i);
      expect(answer).toMatch(/\r\n\r\n$/);
    }
    const viewer = askForStream(dashboard.url);
    const [answer] = (await once(viewer, 'data')) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
    viewer.destroy();
    await expectQuiet(count);
    for (const head of heads) head.destroy();
  });

  it('who ask again and again do not keep the application from closing', async () => {
    const dashboard = await open({ platform });
    const { locks, url } = dashboard;
    const list = locks.list.bind(locks);
    let asked = 0;
    locks.list = async (options) => {
      asked++;
      await sleep(1_500);
      return list(options);
    };
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let goesOn = true;
    const ask = () =>
      new Promise<void>((resolve) => {
        get(`${url}/api/board`, { agent }, (response) => response.resume().on('end', resolve)).on('error', () =>
          resolve(),
        );
      });
    const asking = (async () => {
      while (goesOn) {
        await ask();
        await sleep(200);
      }
    })();
    await until(() => asked === 1);
    app = undefined;
    try {
      const closed = dashboard.close().then(() => 'closed');
      expect(await Promise.race([closed, sleep(12_000, 'open', { ref: false })])).toBe('closed');
    } finally {
      goesOn = false;
      agent.destroy();
      await asking;
    }
  });

  it('leave nothing behind when they go while the guards are asked', async () => {
    let asked = 0;
    const answers: (() => void)[] = [];
    const slow = {
      canActivate: () => {
        asked++;
        return new Promise<boolean>((resolve) => answers.push(() => resolve(true)));
      },
    };
    const dashboard = await open({ platform, dashboard: { public: false, guards: [slow] } });
    const count = countSnapshots(dashboard);
    const viewer = askForStream(dashboard.url);
    await until(() => asked === 1);
    viewer.destroy();
    await sleep(300);
    for (const answer of answers) answer();
    await expectQuiet(count);
  });

  it('do not keep the application from closing when they have stopped reading', async () => {
    const dashboard = await open({
      platform,
      // What the viewer does not read fills all buffers between the server and the viewer.
      setUp: (nest) =>
        nest.use((request: { socket: Socket }, _response: unknown, next: () => void) => {
          request.socket.write(Buffer.alloc(64_000_000));
          next();
        }),
    });
    const count = countSnapshots(dashboard);
    const viewer = askForStream(dashboard.url).pause();
    await until(() => count.taken > 0);
    app = undefined;
    try {
      const closed = dashboard.close().then(() => 'closed');
      expect(await Promise.race([closed, sleep(12_000, 'open', { ref: false })])).toBe('closed');
    } finally {
      viewer.destroy();
    }
  });
});

describe('a viewer of the dashboard by HTTP/2', () => {
  it('who has stopped reading is sent nothing more', async () => {
    let waiting = () => 0;
    await open({
      platform: 'HTTP/2',
      setUp: (nest) =>
        nest.use((_request: unknown, response: { stream: { writableLength: number } }, next: () => void) => {
          waiting = () => response.stream.writableLength;
          next();
        }),
    });
    const { locks, url } = app!;
    const list = locks.list.bind(locks);
    // A page of locks that all change, about 60 kB a second.
    let round = 0;
    locks.list = async (options) => {
      round++;
      const { locks: rows } = await list(options);
      return {
        locks: rows.map((row) => ({ ...row, fencingToken: round })),
        synchronizers: [],
        results: [],
        cursor: undefined,
      };
    };
    const leases = await Promise.all(Array.from({ length: 50 }, (_, n) => locks.acquire(`${'x'.repeat(1_000)}${n}`)));
    const session = connectHttp2(new URL(url).origin);
    const stream = session.request({ ':path': `${new URL(url).pathname}/api/stream` });
    try {
      stream.pause();
      await until(() => round > 10, 60_000);
      // At most one message waits for it, besides what was passed to HTTP/2 already.
      expect(waiting()).toBeGreaterThan(0);
      expect(waiting()).toBeLessThan(250_000);
      // It receives the next message when it reads again.
      let text = '';
      stream.setEncoding('utf8').on('data', (data: string) => {
        text += data;
      });
      stream.resume();
      await until(() => text.includes(`"token":${round}`), 30_000);
      await Promise.all(leases.map((lease) => lease.release()));
    } finally {
      session.destroy();
    }
  });
});
