import { startBlocked } from '../standby/blocked-process.js';
import { useBoardOnRedis } from './board.js';
import { StuckShop } from './stuck-shop.js';
import { DARK, DESKTOP, PHONE, picture } from './viewer.js';

const PATIENT = { timeout: 20_000 };

describe('the page in Chromium', () => {
  let shop: StuckShop | undefined;
  afterEach(async () => {
    await shop?.close();
    shop = undefined;
  });
  const { board, started } = useBoardOnRedis(({ url }) => ({
    locks: { connection: url, applicationName: 'board' },
    dashboard: { readOnly: false },
  }));

  it('says that no lock is held', async () => {
    const page = await board.viewer.open(board.app.url);
    await page.getByText('No lock is held.').waitFor();
    await picture(page, 'empty');
    await picture(await board.viewer.open(board.app.url, PHONE), 'empty-phone');
  });

  it('shows who holds, in what, since when, and who waits: on a desktop, in the dark, on a phone', async () => {
    shop = await StuckShop.open(started.redis.url);
    const page = await board.viewer.open(board.app.url);
    const row = page.getByRole('row', { name: /order:42/ });
    await row.getByText(/shop-1 on .+, pid \d+/).waitFor(PATIENT);
    await row.getByText('OrdersService.pay').waitFor(PATIENT);
    await row.getByRole('cell', { name: '5', exact: true }).waitFor(PATIENT);
    await page.getByText('Live', { exact: true }).waitFor();
    // The longest wait comes first.
    expect(await page.locator('lock-table tbody tr').first().textContent()).toContain('order:42');
    expect(await page.title()).toMatch(/^\(6 waiting\) Locks · 127\.0\.0\.1:\d+$/);
    await page.waitForTimeout(Number(process.env.STUCK_FOR ?? 0));
    await picture(page, 'full');
    await picture(await board.viewer.open(board.app.url, DARK), 'full-dark');
    const phone = await board.viewer.open(board.app.url, PHONE);
    await picture(phone, 'full-phone');
    expect(await phone.evaluate('document.documentElement.scrollWidth === innerWidth')).toBe(true);
    await page.getByRole('tab', { name: /Clients/ }).click();
    await page.getByRole('row', { name: /shop-2 on/ }).waitFor();
    await picture(page, 'clients');
  });

  it('shows for how long the event loop of a process has been blocked', async () => {
    const { child } = startBlocked(['recorded'], { connection: started.redis.url }, { block: 120_000 });
    const page = await board.viewer.open(board.app.url);
    await page.getByRole('tab', { name: /Clients/ }).click();
    const row = page.locator('client-list tr').filter({ hasText: `, pid ${child.pid}` });
    await row.locator('td[data-title="Blocked for"]', { hasText: /^\d+ s$/ }).waitFor({ timeout: 60_000 });
    await picture(page, 'blocked');
    child.kill('SIGKILL');
  });

  it('finds and sorts, and is used by keyboard alone', async () => {
    shop = await StuckShop.open(started.redis.url);
    const page = await board.viewer.open(board.app.url);
    await page.getByRole('row', { name: /order:42/ }).waitFor(PATIENT);
    await page.getByRole('searchbox', { name: 'Search locks' }).focus();
    await page.keyboard.type('nightly');
    await page.locator('lock-table tbody tr').nth(1).waitFor({ state: 'detached' });
    expect(await page.getByRole('status').first().textContent()).toBe('1 locks match');
    // The search also finds locks by their waiters.
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('refundsservice');
    await page.locator('lock-table tbody tr').filter({ hasText: 'order:42' }).waitFor(PATIENT);
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.press('Delete');
    await page.locator('lock-table tbody tr').nth(1).waitFor();
    const first = page.locator('lock-table tbody tr:first-child');
    const byName = page.getByRole('columnheader', { name: 'Lock', exact: true });
    await byName.getByRole('button').focus();
    await page.keyboard.press('Enter');
    await first.filter({ hasText: 'order:42' }).waitFor();
    await page.keyboard.press('Enter');
    await first.filter({ hasText: 'sku:1096' }).waitFor();
    expect(await byName.getAttribute('aria-sort')).toBe('descending');
    await page.getByRole('tab', { name: /^Locks/ }).focus();
    await page.keyboard.press('ArrowRight');
    expect(await page.getByRole('tab', { name: /Clients/ }).getAttribute('aria-selected')).toBe('true');
    expect(await page.evaluate('document.activeElement?.id')).toBe('tab-clients');
  });

  it('shows semaphores, permits and latches, and has no release for them', async () => {
    const { locks } = board.app;
    await locks.getSemaphore('mail-connections', { permits: 10 }).acquire(7);
    await locks.getPermitExpirableSemaphore('cad-licences', { permits: 2 }).acquire();
    await locks.getCountDownLatch('import:2024-06').trySetCount(4);
    const page = await board.viewer.open(board.app.url);
    await page.getByRole('tab', { name: 'Semaphores (3)' }).click(PATIENT);
    const table = page.getByRole('table', { name: 'Semaphores and latches' });
    for (const state of ['7 of 10 taken', '1 of 2 taken', '4 of 4 steps left'])
      await table.getByText(state, { exact: true }).waitFor(PATIENT);
    await table.getByText(/lease left: .*/).waitFor(PATIENT);
    expect(await page.getByRole('button', { name: /release/i }).count()).toBe(0);
    await picture(page, 'semaphores');
    await page.setViewportSize(PHONE.viewport);
    await picture(page, 'semaphores-phone');
    await page.setViewportSize(DESKTOP.viewport);
  });

  it('shows the results of single flights that are kept', async () => {
    await board.app.locks.singleFlight('prices:eur', { keepFor: '1h' }, async () => 'x'.repeat(2_098));
    const page = await board.viewer.open(board.app.url);
    await page.getByRole('tab', { name: 'Results (1)' }).click(PATIENT);
    const table = page.getByRole('table', { name: 'Results of single flights' });
    for (const text of ['prices:eur', '2.1 kB']) await table.getByText(text, { exact: true }).waitFor(PATIENT);
    await table.getByText(/\d+ min \d+ s/).waitFor(PATIENT);
  });

  it('releases a lock by force with a reason, and says what happened', async () => {
    shop = await StuckShop.open(started.redis.url);
    const page = await board.viewer.open(board.app.url);
    await page.getByRole('link', { name: 'report:nightly' }).click(PATIENT);
    const dialog = page.getByRole('dialog', { name: 'report:nightly' });
    await dialog.getByText('NightlyReportService.run').waitFor(PATIENT);
    await picture(page, 'lock');
    // The browser asks for the reason: nothing is sent without one.
    await dialog.getByRole('button', { name: 'Release by force' }).click();
    expect(await board.app.locks.isLocked('report:nightly')).toBe(true);
    await dialog.getByLabel('Reason, for the log').fill('hangs since midnight');
    await page.keyboard.press('Enter');
    await dialog.getByText('It was released.').waitFor(PATIENT);
    await page.keyboard.press('Escape');
    await page.getByRole('tab', { name: /Events/ }).click();
    await page.getByText(/released by force: hangs since midnight; it was held by shop-2/).waitFor(PATIENT);
    await picture(page, 'events');
    await page.setViewportSize(PHONE.viewport);
    await picture(page, 'events-phone');
    await page.getByRole('tab', { name: /Clients/ }).click();
    await picture(page, 'clients-phone');
    await page.setViewportSize(DESKTOP.viewport);
    await page.getByRole('tab', { name: /^Locks/ }).click();
    await page.getByRole('link', { name: 'report:nightly' }).waitFor({ state: 'detached', ...PATIENT });
    expect(await board.app.locks.isLocked('report:nightly')).toBe(false);
    expect(board.app.logger.lines.some((line) => /'report:nightly' was released by force: hangs/.test(line))).toBe(
      true,
    );
  });

  it('keeps the last data while Redis does not answer, says so, and continues', async () => {
    shop = await StuckShop.open(started.redis.url);
    const page = await board.viewer.open(board.app.url);
    const stuck = page.getByRole('row', { name: /order:42/ });
    await stuck.getByText('OrdersService.pay').waitFor(PATIENT);
    await stuck.getByRole('cell', { name: '5', exact: true }).waitFor(PATIENT);
    started.redis.pause();
    try {
      await page
        .getByRole('alert')
        .getByText(/The locks cannot be read/)
        .waitFor({ timeout: 40_000 });
      expect(await page.getByRole('row', { name: /order:42/ }).count()).toBe(1);
      await picture(page, 'outage');
      await picture(await board.viewer.open(board.app.url, PHONE), 'outage-phone');
    } finally {
      started.redis.resume();
    }
    await page.getByText('Live', { exact: true }).waitFor({ timeout: 40_000 });
    expect(await page.getByRole('alert').textContent()).toBe('');
    expect(await page.getByRole('status').first().textContent()).toBe('The locks are read again.');
  });

  it('polls every two seconds if the stream does not arrive, and says when the application is gone', async () => {
    const lease = await board.app.locks.acquire('order:1');
    const page = await board.viewer.open(board.app.url, DESKTOP);
    await page.route('**/api/stream*', (route) => route.abort());
    await page.reload();
    await page.getByText('Live, every 2 s').waitFor(PATIENT);
    await page.getByRole('row', { name: /order:1/ }).waitFor(PATIENT);
    await lease.release();
    await page.getByText('No lock is held.').waitFor(PATIENT);
    await page.route('**/api/board*', (route) => route.abort());
    await page
      .getByRole('alert')
      .getByText(/The application does not answer/)
      .waitFor(PATIENT);
    await page.unroute('**/api/board*');
    await page.getByText('Live, every 2 s').waitFor(PATIENT);
  });

  it('shows names as text, whatever they contain', async () => {
    const name = '<img src=x onerror=alert(1)>"\'&{{base}}';
    const lease = await board.app.locks.acquire(name);
    const page = await board.viewer.open(board.app.url);
    await page.getByRole('link', { name, exact: true }).waitFor(PATIENT);
    expect(await page.locator('img').count()).toBe(0);
    await lease.release();
  });
});
