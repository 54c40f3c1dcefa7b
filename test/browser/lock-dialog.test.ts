import { createLockService, MemoryBackend, MemoryStore, nodeRuntime } from '../../lib/index.js';
import { openDashboard } from '../dashboard/dashboard-app.js';
import { until } from '../support/until.js';
import { useBoard } from './board.js';
import { PHONE, picture } from './viewer.js';

const PATIENT = { timeout: 20_000 };

describe('the view of a lock in Chromium', () => {
  const board = useBoard(() => ({ dashboard: { readOnly: false } }));

  it('says when the lock is not held any more, and when somebody else holds it: that one is not released', async () => {
    const first = await board.app.locks.acquire('order:42');
    const page = await board.viewer.open(board.app.url);
    await page.getByRole('link', { name: 'order:42' }).click(PATIENT);
    const dialog = page.getByRole('dialog', { name: 'order:42' });
    await dialog.getByLabel('Reason, for the log').fill('hangs since midnight');
    const release = dialog.getByRole('button', { name: 'Release by force' });
    expect(await release.isEnabled()).toBe(true);
    await first.release();
    await dialog.getByText('It is not held any more.').waitFor(PATIENT);
    expect(await release.isEnabled()).toBe(false);
    const second = await board.app.locks.acquire('order:42');
    await dialog.getByText(/Somebody else holds it by now/).waitFor(PATIENT);
    await dialog.getByText(second.owner).waitFor();
    expect(await release.isEnabled()).toBe(false);
    await page.keyboard.press('Enter');
    await picture(page, 'lock-of-another');
    expect(await board.app.locks.isLocked('order:42')).toBe(true);
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'order:42' }).click();
    expect(await release.isEnabled()).toBe(true);
    await second.release();
  });

  it('says so without a word of releases where the dashboard is read-only', async () => {
    const readOnly = await openDashboard();
    try {
      const first = await readOnly.locks.acquire('order:42');
      const page = await board.viewer.open(readOnly.url);
      await page.getByRole('link', { name: 'order:42' }).click(PATIENT);
      const dialog = page.getByRole('dialog', { name: 'order:42' });
      await dialog.getByText(first.owner).waitFor();
      expect(await dialog.getByText(/release/i).count()).toBe(0);
      await first.release();
      await readOnly.locks.acquire('order:42');
      await dialog.getByText('Somebody else holds it by now.', { exact: true }).waitFor(PATIENT);
    } finally {
      await readOnly.close();
    }
  });

  it('shows the processes that wait, in their order', async () => {
    const store = new MemoryStore();
    const backend = () => new MemoryBackend({ runtime: nodeRuntime, store });
    const app = await openDashboard({ locks: { backend: backend() } });
    const others = ['shop', 'stock'].map((applicationName) =>
      createLockService({ backend: backend(), applicationName }),
    );
    try {
      const lease = await app.locks.acquire('order:42');
      const waiting: Promise<void>[] = [];
      for (const [n, other] of others.entries()) {
        for (let callers = 0; callers <= n; callers++)
          waiting.push(other.withLock('order:42', { group: `job ${n}` }, async () => {}));
        await until(async () => (await app.locks.inspect('order:42')).line.length > n);
      }
      const page = await board.viewer.open(app.url);
      await page.getByRole('link', { name: 'order:42' }).click(PATIENT);
      const dialog = page.getByRole('dialog', { name: 'order:42' });
      await dialog.getByText('2 processes wait', { exact: true }).waitFor(PATIENT);
      const items = dialog.getByRole('listitem');
      await items.filter({ hasText: /^1\. shop on .+, pid \d+ in job 0: 1 caller, for \d+/ }).waitFor(PATIENT);
      await items.filter({ hasText: /^2\. stock on .+ in job 1: 2 callers, the first for \d+/ }).waitFor(PATIENT);
      await picture(page, 'lock-with-line');
      await lease.release();
      await Promise.all(waiting);
    } finally {
      await Promise.all(others.map((other) => other.close()));
      await app.close();
    }
  });

  it('stays open when the lock leaves the page of locks that is shown', async () => {
    const lease = await board.app.locks.acquire('order:42');
    const page = await board.viewer.open(board.app.url);
    await page.getByRole('link', { name: 'order:42' }).click(PATIENT);
    const dialog = page.getByRole('dialog', { name: 'order:42' });
    const waiting = board.app.locks.acquire('order:42');
    // More than a page of locks are sorted before it: their waits are as long, and they are older or first by name.
    const others = await Promise.all(Array.from({ length: 60 }, (_, n) => board.app.locks.acquire(`a:${n}`)));
    const waiters = Array.from({ length: 60 }, (_, n) => board.app.locks.acquire(`a:${n}`));
    await dialog.getByText('Waiting', { exact: true }).waitFor();
    await lease.release();
    await dialog.getByText(/Somebody else holds it by now/).waitFor(PATIENT);
    await picture(page, 'lock-elsewhere');
    await Promise.all(others.map((other) => other.release()));
    await Promise.all(waiters.map(async (waiter) => (await waiter).release()));
    await (await waiting).release();
  });

  it('is read on a phone, with names that are long', async () => {
    const name = `invoice:${'2026-11-very-long-customer-name/'.repeat(8)}`;
    const lease = await board.app.locks.withLock(name, async () => {
      const page = await board.viewer.open(board.app.url, PHONE);
      await page.getByRole('link', { name }).click(PATIENT);
      await page.getByRole('dialog').getByText('Held by', { exact: true }).waitFor();
      await picture(page, 'lock-phone');
      expect(await page.evaluate('document.documentElement.scrollWidth === innerWidth')).toBe(true);
    });
    expect(lease).toBeUndefined();
  });
});
