import { useBoard } from './board.js';

const PATIENT = { timeout: 20_000 };

describe('the address of the page in Chromium', () => {
  const board = useBoard(() => ({ dashboard: { readOnly: false } }));

  it('is that of the tab and the lock that are shown: Back and Forward lead through them, and it can be sent', async () => {
    const lease = await board.app.locks.acquire('order:42');
    const page = await board.viewer.open(board.app.url);
    await page.getByRole('link', { name: 'order:42' }).click(PATIENT);
    const dialog = page.getByRole('dialog', { name: 'order:42' });
    await dialog.getByText(lease.owner).waitFor(PATIENT);
    expect(page.url()).toBe(`${board.app.url}#/locks?lock=order:42`);

    const sent = await board.viewer.open(page.url());
    await sent.getByRole('dialog', { name: 'order:42' }).getByText(lease.owner).waitFor(PATIENT);
    await sent.getByRole('button', { name: 'Release by force' }).waitFor();

    await page.goBack();
    await dialog.waitFor({ state: 'hidden' });
    await page.goForward();
    await dialog.getByText(lease.owner).waitFor(PATIENT);
    await page.keyboard.press('Escape');
    // The dialog is hidden before its "close" event sets the address.
    await page.waitForURL(`${board.app.url}#/locks`);
    await page.getByRole('tab', { name: /Clients/ }).click();
    await page.getByRole('tab', { name: /Events/ }).click();
    await page.waitForURL(`${board.app.url}#/events`);
    await page.goBack();
    const clients = page.getByRole('tab', { name: /Clients/, selected: true });
    await clients.waitFor();
    await page.reload();
    await clients.waitFor();
    await lease.release();
  });

  it('is also that of the search, the order and the page of locks, and of odd names', async () => {
    const name = 'a b&lock=c#d?e%/:日本';
    const leases = await Promise.all([name, 'order:1', 'order:2'].map((one) => board.app.locks.acquire(one)));
    const page = await board.viewer.open(board.app.url);
    await page.getByRole('searchbox').fill('order');
    await page.getByRole('link', { name: 'a b' }).waitFor({ state: 'detached', ...PATIENT });
    await page.getByRole('button', { name: 'Lock', exact: true }).click();
    await page.locator('th.name[aria-sort=ascending]').waitFor();
    expect(page.url()).toBe(`${board.app.url}#/locks?search=order&sort=name&order=ascending`);
    await page.reload();
    await page.getByRole('link', { name: 'order:1' }).waitFor(PATIENT);
    expect(await page.getByRole('searchbox').inputValue()).toBe('order');
    expect(await page.locator('lock-table tbody tr').count()).toBe(2);
    await page.locator('th.name[aria-sort=ascending]').waitFor();
    // A search adds nothing to the history, so Back leaves the page.
    await page.getByRole('searchbox').fill('');
    await page.getByRole('link', { name, exact: true }).click(PATIENT);
    const dialog = page.getByRole('dialog', { name });
    await dialog.getByText(leases[0].owner).waitFor(PATIENT);
    await page.reload();
    await dialog.getByText(leases[0].owner).waitFor(PATIENT);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  it('of a lock that nobody holds says so, and shows who holds it when somebody does', async () => {
    const page = await board.viewer.open(`${board.app.url}#/locks?lock=order:42`);
    const dialog = page.getByRole('dialog', { name: 'order:42' });
    await dialog.getByText('It is not held.', { exact: true }).waitFor(PATIENT);
    expect(await dialog.getByRole('button', { name: 'Release by force' }).count()).toBe(0);
    const lease = await board.app.locks.acquire('order:42');
    await dialog.getByText(lease.owner).waitFor(PATIENT);
    await lease.release();
    await dialog.getByText('It is not held any more.').waitFor(PATIENT);
  });

  it('that makes no sense shows the locks', async () => {
    const lease = await board.app.locks.acquire('order:42');
    const page = await board.viewer.open(
      `${board.app.url}#/nothing?sort=size&order=up&page=x&search=${'o'.repeat(300)}`,
    );
    await page.getByText(/No lock that is held matches/).waitFor(PATIENT);
    await page.goto(`${board.app.url}#what`);
    await page.getByRole('link', { name: 'order:42' }).waitFor(PATIENT);
    await page.getByText('Live', { exact: true }).waitFor(PATIENT);
    await lease.release();
  });

  it('is reached by a click anywhere in a row, but not by one that selects text', async () => {
    const lease = await board.app.locks.withLock('order:42', { group: 'OrdersService.pay' }, async ({ owner }) => {
      const page = await board.viewer.open(board.app.url);
      const row = page.getByRole('row', { name: /order:42/ });
      await row.getByText('exclusive').dblclick(PATIENT);
      await page.waitForTimeout(500);
      const dialog = page.getByRole('dialog', { name: 'order:42' });
      // The first click of the double click shows the lock.
      if (await dialog.isVisible()) await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      await page.evaluate('getSelection().selectAllChildren(document.querySelector("lock-table tbody td"))');
      await row.dispatchEvent('click');
      expect(await dialog.isVisible()).toBe(false);
      await page.evaluate('getSelection().removeAllRanges()');
      await row.getByText('exclusive').click();
      await dialog.getByText(owner).waitFor(PATIENT);
    });
    expect(lease).toBeUndefined();
  });
});
