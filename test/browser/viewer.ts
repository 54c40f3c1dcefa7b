import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const PICTURES = fileURLToPath(new URL('../../dist/screenshots/', import.meta.url));

export const DESKTOP = { viewport: { width: 1280, height: 800 } };
export const DARK = { ...DESKTOP, colorScheme: 'dark' } as const;
export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** A real browser, which collects the errors of its pages. */
export class Viewer {
  /** Errors of scripts, and what the content security policy has blocked. */
  readonly errors: string[] = [];

  private constructor(private readonly browser: Browser) {}

  static async start(): Promise<Viewer> {
    const executablePath = process.env.CHROMIUM;
    if (!executablePath) throw new Error('CHROMIUM is not set: run npm run suite -- browser');
    return new Viewer(await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] }));
  }

  async open(url: string, options: BrowserContextOptions = DESKTOP): Promise<Page> {
    const page = await this.browser.newPage(options);
    page.on('pageerror', ({ message }) => this.errors.push(message));
    page.on('console', (message) => {
      // Some tests are about a server that gives no answer or a wrong one.
      if (
        message.type() === 'error' &&
        !/Failed to load resource|net::ERR|^EventSource's response/.test(message.text())
      )
        this.errors.push(message.text());
    });
    await page.goto(url);
    await page.waitForSelector('lock-board[data-ready]');
    return page;
  }

  close(): Promise<void> {
    return this.browser.close();
  }
}

/** Writes dist/screenshots/<name>.png. */
export async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}
