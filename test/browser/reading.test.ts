import type { Page } from 'playwright-core';
import { createLockService, type LockService } from '../../lib/core.js';
import { useBoardOnRedis } from './board.js';
import { DARK, PHONE, picture } from './viewer.js';

const PATIENT = { timeout: 20_000 };

/** The numbers of lines of the texts that a selector finds. */
const linesOf = (page: Page, selector: string) =>
  page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return new Set([...range.getClientRects()].filter(({ width }) => width > 0).map(({ bottom }) => Math.round(bottom / 8))).size;
  })`) as Promise<number[]>;

describe('what the page in Chromium shows is easy to read:', () => {
  let shop: LockService | undefined;
  afterEach(async () => {
    await shop?.close();
    shop = undefined;
  });
  const { board, started } = useBoardOnRedis(({ url }) => ({
    locks: {
      connection: url.replace('redis://', 'redis://default:hunter2@'),
      applicationName: 'board',
      keyPrefix: 'shop:',
    },
    dashboard: { readOnly: false, environment: 'production' },
  }));

  it('the Redis, the prefix and the environment, without a password, on top and beside the button that releases', async () => {
    const lease = await board.app.locks.acquire('order:42');
    const page = await board.viewer.open(board.app.url);
    const { host } = new URL(started.redis.url);
    const header = page.locator('header');
    await header.getByText(`redis ${host}/0`).waitFor(PATIENT);
    await header.getByText('production', { exact: true }).waitFor();
    await header.getByText('shop:', { exact: true }).waitFor();
    expect(await page.title()).toMatch(/^Locks · production · /);
    await page.getByRole('link', { name: 'order:42' }).click(PATIENT);
    const form = page.getByRole('dialog').locator('form');
    await form.getByText('production', { exact: true }).waitFor(PATIENT);
    await form.getByText(`redis ${host}/0`).waitFor();
    expect(await page.content()).not.toContain('hunter2');
    await picture(page, 'release');
    await lease.release();
  });

  it('names of events in one line, beside long sentences', async () => {
    const names = ['invoice:2026-11:customer-4711', 'report:nightly:europe', 'sku:lamp-55ba27'];
    for (const name of names) {
      await board.app.locks.acquire(name);
      const reason = `the worker hangs since midnight: ${'it waits for the bank, which does not answer, '.repeat(8)}`;
      expect(await board.app.release(name, { reason: reason.slice(0, 400) })).toEqual({ status: 200 });
    }
    const page = await board.viewer.open(`${board.app.url}#/events`);
    await page.getByRole('tab', { name: /Events \(6\)/ }).click(PATIENT);
    await page
      .getByRole('row', { name: /sku:lamp/ })
      .first()
      .waitFor(PATIENT);
    expect(await linesOf(page, 'event-list tbody th')).toEqual([1, 1, 1, 1, 1, 1]);
    await picture(page, 'events-long');
    await page.setViewportSize(PHONE.viewport);
    await picture(page, 'events-long-phone');
    expect(await page.evaluate('document.documentElement.scrollWidth === innerWidth')).toBe(true);
  });

  it('the holder in one line, as the column of tokens is there only where there are any', async () => {
    shop = createLockService({
      connection: started.redis.url,
      applicationName: 'checkout-7d9f8b6c5d-x2x4q',
      keyPrefix: 'shop:',
      logger: { warn() {}, error() {} },
    });
    const names = ['invoice:2026-11:customer-4711', 'report:nightly:europe:summary', 'order:42'];
    const group = 'NightlyReportService.runForAllRegions';
    const leases = await Promise.all(names.map((name) => (shop as LockService).acquire(name, { group })));
    const page = await board.viewer.open(board.app.url);
    await page.getByText(group).nth(2).waitFor(PATIENT);
    expect(await page.getByRole('columnheader', { name: 'Token' }).count()).toBe(0);
    await picture(page, 'long-names');
    expect(await linesOf(page, 'lock-table td.holder')).toEqual([1, 1, 1]);
    expect(await linesOf(page, 'lock-table tbody th')).toEqual([1, 1, 1]);
    await picture(await board.viewer.open(board.app.url, DARK), 'long-names-dark');
    await picture(await board.viewer.open(board.app.url, PHONE), 'long-names-phone');
    await leases[0].release();
    const mine = await board.app.locks.acquire('order:43');
    await page.getByRole('columnheader', { name: 'Token' }).waitFor(PATIENT);
    await page.getByText(String(mine.fencingToken)).waitFor();
    await picture(page, 'tokens');
    await mine.release();
  });

  it('names with direction marks: what stands beside them keeps its order, and the marks are seen', async () => {
    const name = 'order:\u202e24\u2066';
    shop = createLockService({
      connection: started.redis.url,
      applicationName: 'shop \u202e1-eman',
      keyPrefix: 'shop:',
    });
    const lease = await shop.acquire(name, { group: '\u202eyap.ecivreSsredrO' });
    const page = await board.viewer.open(board.app.url);
    const row = page.getByRole('row', { name: /order:/ });
    await row.getByText(/ecivreSsredrO/).waitFor(PATIENT);
    const shown = (await row.textContent()) as string;
    expect(shown).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    expect(shown).toContain('order:U+202E24U+2066');
    expect(shown).toContain('shop U+202E1-eman on ');
    // Every text that comes from others is isolated in a bidi isolate.
    expect(await row.locator('th bdi, td.holder bdi, td.method bdi').count()).toBe(4);
    await row.getByRole('link').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Held by', { exact: true }).waitFor(PATIENT);
    expect(await dialog.textContent()).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    await picture(page, 'direction-marks');
    await dialog.getByLabel('Reason, for the log').fill('hangs \u202ethginim');
    await page.keyboard.press('Enter');
    await dialog.getByText('It was released.').waitFor(PATIENT);
    await page.goto(`${board.app.url}#/events`);
    await page.getByText(/hangs/).waitFor(PATIENT);
    expect(await page.locator('event-list').textContent()).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    expect(board.app.logger.lines.join()).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    await lease.release().catch(() => {});
  });
});
