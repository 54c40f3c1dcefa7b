import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeResults, type Results } from '../../sample-app/demo/result.js';
import type { Rush } from '../../sample-app/demo/rush.js';
import { ROOT } from './support/markdown.js';

const PICTURE = readFileSync(join(ROOT, 'docs/images/demo.svg'), 'utf8');

interface Painter {
  shownOf(output: string): string[];
  draw(lines: readonly string[]): string;
}

const receipt = (replica: string, startedAt: number, fencingToken?: number) =>
  ({ replica, startedAt, endedAt: startedAt + 10, fencingToken }) as Rush['receipts'][number];

function rush(sold: number, oversold: number): Rush {
  const receipts = Array.from({ length: sold }, (_, i) => receipt(`shop-${(i % 2) + 1}`, i * 10, i + 1));
  return { inStock: 40, ordered: 120, receipts, left: 0, waits: [500], oversold, adds: oversold === 0, failures: [] };
}

const RUNS = new Map([
  ['shop-1', 1],
  ['shop-2', 2],
]);

const RESULTS: Results = {
  replicas: ['shop-1', 'shop-2'],
  locked: rush(40, 0),
  unlocked: rush(120, 80),
  transfers: { booked: 100, refused: 0, failures: [], before: 300, after: 300, adds: true },
  prices: { customers: 120, computedBy: ['shop-1'], failures: [] },
  unshared: { customers: 120, computedBy: Array(120).fill('shop-1'), failures: [] },
  cron: { due: 3, runs: RUNS, skipped: 3, once: true },
};

const OUTPUT = [
  'The shop opens  1.0 s',
  "2 processes, shop-1 and shop-2, share a Redis 7.0.15 of the demo's own (port 36657)",
  'a step  0.2 s',
  '',
  ...describeResults(RESULTS),
  '',
].map((line) => `  ${line}`);

/** The words of a picture, in order, with all numbers and bars alike, and spaces as in prose. */
const wordsOf = (svg: string): string =>
  [...svg.matchAll(/<tspan[^>]*>([^<]*)/g)]
    .map(([, text]) => text)
    .join(' ')
    .replace(/\d+(\.\d+)*/g, '0')
    .replace(/(?<=shop-0)( [█#\d]+)+(?= (shop|without|✓))/g, '')
    .replace(/ +/g, ' ');

describe("README's picture of the demo", () => {
  let painter: Painter;
  beforeAll(async () => {
    painter = await import(`${ROOT}/.ci/build/demo-picture.mjs`);
  });

  it('shows what the demo prints today', () => {
    const drawn = wordsOf(painter.draw(painter.shownOf(OUTPUT.join('\n'))));
    expect(drawn).toContain('← oversold by 0!');
    expect(wordsOf(PICTURE).replace(/ ✓ With the lock, .*/, '')).toBe(drawn);
  });

  it('is text that needs nothing from elsewhere', () => {
    expect(PICTURE).not.toMatch(/<(image|script|foreignObject|use|path)|href|url\(|@import|@font-face/);
  });

  it('says so when the output is not that of the demo', () => {
    expect(() => painter.shownOf('command not found')).toThrow(/not what the demo prints/);
  });
});
