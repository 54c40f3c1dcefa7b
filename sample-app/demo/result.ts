import type { Receipt } from '../orders/receipt.js';
import type { CronRuns } from './cron.js';
import type { PriceLists } from './prices.js';
import type { Rush } from './rush.js';
import { inMs, mark, percentile, table } from './table.js';
import { columnOf, timeline } from './timeline.js';
import type { Transfers } from './transfers.js';

export interface Results {
  readonly replicas: readonly string[];
  readonly locked: Rush;
  readonly unlocked: Rush;
  readonly transfers: Transfers;
  /** With the single flight, and without it. */
  readonly prices: PriceLists;
  readonly unshared: PriceLists;
  readonly cron: CronRuns;
}

/** What the demo prints at its end. */
export function describeResults({ replicas, locked, unlocked, transfers, prices, unshared, cron }: Results): string[] {
  const rushes = [locked, unlocked];
  const column = columnOf(locked.receipts);
  return [
    ...table([
      ['', ['with the lock', 'without it']],
      ['', ['─────────────', '─────────────']],
      ['lamps in stock', rushes.map(({ inStock }) => String(inStock))],
      ['ordered', rushes.map(({ ordered }) => String(ordered))],
      ['sold', rushes.map(({ receipts }) => String(receipts.length)), oversoldRemark(rushes)],
      ['left in stock', rushes.map(({ left }) => String(left))],
      ['sold + left = in stock', rushes.map(({ adds }) => mark(adds))],
      ['orders in work at once', rushes.map(({ receipts }) => String(mostAtOnce(receipts)))],
      ['customers waited, p50', rushes.map(({ waits }) => inMs(percentile(waits, 0.5)))],
      ['                  p99', rushes.map(({ waits }) => inMs(percentile(waits, 0.99)))],
      ['                  max', rushes.map(({ waits }) => inMs(percentile(waits, 1)))],
    ]),
    '',
    `who was selling lamps when (one column is ${column} ms; █ one order in work, 2-9 as many, # more)`,
    '',
    'with the lock',
    ...timeline(locked.receipts, replicas, column),
    'without it',
    ...timeline(unlocked.receipts, replicas, column),
    '',
    `${mark(tokensRise(locked.receipts))} fencing tokens   rise with every order of a lamp`,
    `${mark(transfers.adds)} transfers        ${describeTransfers(transfers)}`,
    `${mark(isComputedOnce(prices))} price list       ${describePrices(prices, unshared)}`,
    `${mark(cron.once)} nightly report   ${describeCron(cron)}`,
  ];
}

/** Why the demo must fail; empty when all is well. That the unlocked path oversells is not a reason. */
export function complaintsAbout({ locked, unlocked, transfers, prices, unshared }: Results): string[] {
  const failures = [locked, unlocked, transfers, prices, unshared].flatMap((scene) => scene.failures);
  const complaints = failures.map((f) => `answered: ${f}`);
  if (locked.oversold > 0) complaints.push(`oversold by ${locked.oversold} with the lock`);
  if (locked.receipts.length < Math.min(locked.inStock, locked.ordered)) complaints.push('lamps were left over');
  if (!locked.adds) complaints.push('with the lock, sold and left are not what was in stock');
  if (!tokensRise(locked.receipts)) complaints.push('a fencing token was not higher than the one before');
  if (transfers.booked === 0) complaints.push('no transfer was booked');
  if (!transfers.adds) complaints.push('transfers made or lost pieces');
  if (!isComputedOnce(prices)) complaints.push(`the price list was computed ${prices.computedBy.length} times`);
  return [...new Set(complaints)];
}

function oversoldRemark(rushes: readonly Rush[]): string {
  const [locked, unlocked] = rushes.map(({ oversold }) => oversold);
  if (locked) return `✗ OVERSOLD by ${locked} with the lock`;
  return unlocked ? `← oversold by ${unlocked}!` : '';
}

function mostAtOnce(receipts: readonly Receipt[]): number {
  const running = ({ startedAt: moment }: Receipt) =>
    receipts.filter(({ startedAt, endedAt }) => startedAt <= moment && moment < endedAt).length;
  return Math.max(0, ...receipts.map(running));
}

function tokensRise(receipts: readonly Receipt[]): boolean {
  const tokens = [...receipts].sort((a, b) => a.startedAt - b.startedAt).map(({ fencingToken }) => fencingToken ?? 0);
  return tokens.every((token, i) => i === 0 || token > tokens[i - 1]!);
}

function describeTransfers({ booked, refused, failures, before, after, adds }: Transfers): string {
  const counts = [`${booked} booked`];
  if (refused > 0) counts.push(`${refused} refused`);
  if (failures.length > 0) counts.push(`${failures.length} failed`);
  return `${counts.join(', ')}; ${before} pieces before, ${after} after${adds ? '' : ', and not what was booked'}`;
}

function isComputedOnce({ computedBy }: PriceLists): boolean {
  return computedBy.length === 1;
}

function describePrices(prices: PriceLists, unshared: PriceLists): string {
  const { customers, computedBy } = prices;
  const times = isComputedOnce(prices) ? `once, by ${computedBy[0]},` : `${computedBy.length} times`;
  return `computed ${times} for ${customers} customers; without the single flight ${unshared.computedBy.length} times`;
}

function describeCron({ due, runs, skipped }: CronRuns): string {
  const total = [...runs.values()].reduce((sum, count) => sum + count, 0);
  if (runs.size === 1) return `due ${due} times, ran ${total} times`;
  const each = [...runs].map(([replica, count]) => `${count} on ${replica}`).join(', ');
  return `due ${due} times on each replica, ran ${total} times (${each}), skipped ${skipped} times`;
}
