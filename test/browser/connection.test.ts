import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { INestApplication } from '@nestjs/common';
import type { Page } from 'playwright-core';
import { type DashboardApp, openDashboard } from '../dashboard/dashboard-app.js';
import { freePort } from '../support/servers/free-port.js';
import { until } from '../support/until.js';
import { BufferingProxy } from './buffering-proxy.js';
import { picture, Viewer } from './viewer.js';

const PATIENT = { timeout: 20_000 };

/** Sets what the browser reports to the page about its tab. */
const setHidden = (page: Page, hidden: boolean) =>
  page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${hidden} });
    document.dispatchEvent(new Event('visibilitychange'))`);

/** The requests that have ended: the browser records a request when it ends. */
const FINISHED_STREAMS =
  "performance.getEntriesByType('resource').filter(({ name }) => name.includes('/api/stream')).length";

describe('the connection of the page in Chromium', () => {
  let viewer: Viewer;
  let app: DashboardApp | undefined;
  beforeAll(async () => {
    viewer = await Viewer.start();
  });
  afterEach(async () => {
    await app?.close();
    app = undefined;
    expect(viewer.errors.splice(0)).toEqual([]);
  });
  afterAll(() => viewer.close());

  it('polls while a proxy buffers the stream, and works below a path that the proxy removes', async () => {
    app = await openDashboard();
    await app.locks.acquire('order:1');
    const proxy = await BufferingProxy.start(app.url);
    try {
      const page = await viewer.open(`${proxy.url}/admin/locks`);
      await page.getByRole('row', { name: /order:1/ }).waitFor(PATIENT);
      // The first table appears before the page gives up the stream.
      expect(await page.evaluate(FINISHED_STREAMS)).toBe(0);
      await page.getByText('Live, every 2 s').waitFor();
      await app.locks.forceRelease('order:1');
      await page.getByText('No lock is held.').waitFor(PATIENT);
    } finally {
      await proxy.close();
    }
  });

  it('opens the next stream when one that has lasted ends', async () => {
    app = await openDashboard();
    const page = await viewer.open(app.url);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.waitForTimeout(14_000);
    const next = page.waitForRequest(/api\/stream/);
    (app.app.getHttpServer() as { closeAllConnections(): void }).closeAllConnections();
    await next;
    await app.locks.acquire('order:1');
    await page.getByRole('row', { name: /order:1/ }).waitFor(PATIENT);
    await page.getByText('Live', { exact: true }).waitFor(PATIENT);
  });

  it('is left to other tabs while this one is in the background', async () => {
    let streams = 0;
    app = await openDashboard({
      setUp: (nest) =>
        nest.use((request: { url: string }, response: ServerResponse, next: () => void) => {
          if (request.url.includes('/api/stream')) {
            streams++;
            response.once('close', () => streams--);
          }
          next();
        }),
    });
    const page = await viewer.open(app.url);
    await until(() => streams === 1);
    await setHidden(page, true);
    await until(() => streams === 0);
    await app.locks.acquire('order:1');
    await setHidden(page, false);
    await page.getByRole('row', { name: /order:1/ }).waitFor(PATIENT);
    await page.getByText('Live', { exact: true }).waitFor(PATIENT);
    expect(streams).toBe(1);
  });

  it('leads to a page to sign in: it says so, and does not take that for a release', async () => {
    let signedIn = true;
    const askToSignIn = (nest: INestApplication) =>
      nest.use((request: { url: string }, response: ServerResponse, next: () => void) => {
        if (request.url.includes('sign-in')) response.end('<h1>Sign in</h1>');
        else if (signedIn) next();
        else response.writeHead(302, { location: '/sign-in' }).end();
      });
    app = await openDashboard({ dashboard: { readOnly: false }, setUp: askToSignIn });
    await app.locks.acquire('order:1');
    const page = await viewer.open(app.url);
    await page.getByRole('link', { name: 'order:1' }).click(PATIENT);
    const dialog = page.getByRole('dialog', { name: 'order:1' });
    await dialog.getByLabel('Reason, for the log').fill('hangs since midnight');
    // The stream that is already open continues.
    signedIn = false;
    await dialog.getByRole('button', { name: 'Release by force' }).click();
    await dialog.getByText(/sign in again/).waitFor(PATIENT);
    expect(await dialog.getByText('It was released.').count()).toBe(0);
    expect(await app.locks.isLocked('order:1')).toBe(true);
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page
      .getByRole('alert')
      .getByText(/sign in again/)
      .waitFor(PATIENT);
    signedIn = true;
    await page.getByText(/^Live/).waitFor(PATIENT);
  });

  it('shows the age of the data if it takes long to read them', async () => {
    app = await openDashboard();
    const { locks } = app;
    const page = await viewer.open(app.url);
    await page.getByText('Live', { exact: true }).waitFor(PATIENT);
    const list = locks.list.bind(locks);
    locks.list = async (options) => {
      await sleep(18_000);
      return list(options);
    };
    await page.getByText(/^Live, as of \d+ s ago$/).waitFor(PATIENT);
    await page.getByText('Live', { exact: true }).waitFor({ timeout: 30_000 });
  });

  it('does not say that no lock is held when nothing could be read yet', async () => {
    const connection = `redis://127.0.0.1:${await freePort()}`;
    app = await openDashboard({ locks: { connection, commandTimeout: 1_000 } });
    const page = await viewer.open(app.url);
    await page
      .getByRole('alert')
      .getByText(/There is no data yet/)
      .waitFor(PATIENT);
    await page.getByText('The locks could not be read yet.').waitFor();
    expect(await page.getByText('No lock is held.').count()).toBe(0);
    expect(await page.getByRole('definition').first().textContent()).toBe('–');
    await picture(page, 'outage-at-first');
  });

  it('does not render unchanged parts again, so that they are not read aloud again, even if the page polls', async () => {
    const connection = `redis://127.0.0.1:${await freePort()}`;
    app = await openDashboard({ locks: { connection, commandTimeout: 1_000 } });
    const page = await viewer.open(app.url);
    await page.route('**/api/stream*', (route) => route.abort());
    await page.reload();
    await page
      .getByRole('alert')
      .getByText(/There is no data yet/)
      .waitFor(PATIENT);
    // On a slow machine the reason for the trouble may still change: only what is replaced by the same text counts.
    await page.evaluate(`window.changes = [];
      const texts = new Map([...document.querySelectorAll('main, main *')].map((part) => [part, part.textContent]));
      new MutationObserver((all) => {
        for (const part of new Set(all.map(({ target }) => target))) {
          if (texts.get(part) === part.textContent) changes.push(part.className || part.localName);
          texts.set(part, part.textContent);
        }
      }).observe(document.querySelector('main'), { childList: true, subtree: true })`);
    let polls = 0;
    page.on('requestfinished', (request) => {
      if (request.url().includes('/api/board')) polls++;
    });
    await until(() => polls > 2);
    expect(await page.evaluate('changes')).toEqual([]);
  });
});
