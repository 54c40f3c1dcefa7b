// Shows what the shop's locks are good for: npm run demo
//   npm run demo -- --serve                leaves the shop running under load, with the page that shows its locks
//   npm run demo -- --stuck [--after 8]    one process is stuck in a lock, for 40 s or as many as given:
//                                          what the tools say (--all: everything)
import { randomBytes } from 'node:crypto';
import { parseArgs, styleText } from 'node:util';
import { stopChildren } from './children.js';
import { cronRuns } from './cron.js';
import { forgetPrices, priceLists } from './prices.js';
import { complaintsAbout, describeResults } from './result.js';
import { rush } from './rush.js';
import { clearStock, keepOrdering, SLOW_PAYMENTS } from './serve.js';
import { openShop, type Shop } from './shop.js';
import { NEVER_PAID, STUCK_FOR, stuckLock, TELEMETRY } from './stuck.js';
import { crossedTransfers } from './transfers.js';

const SALE = { inStock: 40, ordered: 120 };
const TRANSFERS = { pieces: 150, count: 100 };
const CUSTOMERS = 120;
const REPORTS = 3;

const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
let interrupted = false;

const inColour = process.stdout.isTTY && !process.env.NO_COLOR;

function print(...lines: string[]): void {
  for (const line of lines) {
    const text = line && `  ${line}`;
    console.log(
      inColour
        ? text.replaceAll('✓', styleText('green', '✓')).replace(/✗.*|←.*/, (bad) => styleText('red', bad))
        : text,
    );
  }
}

async function step<T>(title: string, work: () => Promise<T>): Promise<T> {
  const start = performance.now();
  const result = await work();
  print(`${title.padEnd(70)} ${((performance.now() - start) / 1000).toFixed(1)} s`);
  return result;
}

function describeShop({ redis, replicas }: Shop): string[] {
  const names = replicas.map(({ name }) => name).join(' and ');
  if (redis) return [`${replicas.length} processes, ${names}, share ${redis.description}`];
  return [
    `1 process, ${names}, with its locks in memory, as there is no redis-server on the PATH.`,
    'To see two processes share one Redis: install redis-server, or REDIS_URL=redis://localhost:6379 npm run demo',
  ];
}

/** @returns whether everything is as it should be */
async function demo(): Promise<boolean> {
  print('', 'Customers order at the same moment from all processes of a shop, with locks and without them.', '');
  const shop = await step('The shop opens', openShop);
  const { replicas } = shop;
  print(...describeShop(shop), '');

  const run = randomBytes(3).toString('hex'); // a shared Redis may already have articles, or another demo
  const [lamp, unlockedLamp, chair, table] = ['lamp', 'unlocked-lamp', 'chair', 'table'].map((sku) => `${sku}-${run}`);
  try {
    const { inStock, ordered } = SALE;
    const rushTitle = (path: string) => `${ordered} orders at once for ${inStock} lamps: POST ${path}`;
    const transferTitle = `${TRANSFERS.count} transfers at once, chairs to tables and tables to chairs`;

    const locked = await step(rushTitle('/orders'), () => rush(replicas, '/orders', { sku: lamp!, ...SALE }));
    const unlocked = await step(rushTitle('/orders/unlocked'), () =>
      rush(replicas, '/orders/unlocked', { sku: unlockedLamp!, ...SALE }),
    );
    const transfers = await step(transferTitle, () =>
      crossedTransfers(replicas, { skus: [chair!, table!], ...TRANSFERS }),
    );
    const pricesTitle = (path: string) => `${CUSTOMERS} customers at once ask for the price list: GET ${path}`;
    const prices = await step(pricesTitle('/prices'), () => priceLists(replicas, '/prices', CUSTOMERS));
    const unshared = await step(pricesTitle('/prices/unshared'), () =>
      priceLists(replicas, '/prices/unshared', CUSTOMERS),
    );
    const cron = await step(`Until the nightly report was due ${REPORTS} times`, () => cronRuns(replicas, REPORTS));

    const names = replicas.map(({ name }) => name);
    const results = { replicas: names, locked, unlocked, transfers, prices, unshared, cron };
    print('', ...describeResults(results), '');
    const complaints = complaintsAbout(results);
    print(...complaints.map((complaint) => `✗ ${complaint}`));
    if (complaints.length === 0) print('✓ With the lock, nothing was sold that was not there.', '');
    return complaints.length === 0;
  } finally {
    if (!interrupted)
      await Promise.allSettled([
        ...[lamp, unlockedLamp, chair, table].map((sku) => replicas[0]!.ask('DELETE', `/stock/${sku}`)),
        forgetPrices(replicas),
      ]);
  }
}

/** Leaves the shop running under load until it is interrupted. */
async function serve(): Promise<never> {
  print('');
  const shop = await step('The shop opens', () => openShop(SLOW_PAYMENTS));
  open = shop;
  print(...describeShop(shop), '', 'Who holds, who waits:');
  print(...shop.replicas.map(({ name, url }) => `${name}  ${url}/locks`), '', 'Ctrl-C ends it.');
  return keepOrdering(shop.replicas);
}

/** @returns whether every tool had something to say */
async function stuck(seconds: number, all: boolean): Promise<boolean> {
  print('');
  const shop = await step('The shop opens', () => openShop(NEVER_PAID, [TELEMETRY]));
  print(...describeShop(shop));
  return stuckLock(shop, { seconds, all, print });
}

function start(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      serve: { type: 'boolean' },
      stuck: { type: 'boolean' },
      after: { type: 'string' },
      all: { type: 'boolean', default: false },
    },
  });
  if (values.serve) return serve();
  if (!values.stuck) return demo();
  const seconds = Number(values.after ?? STUCK_FOR);
  if (!(seconds >= 2 && seconds <= 60)) throw new Error(`--after is '${values.after}'; it must be 2 to 60 seconds`);
  return stuck(seconds, values.all);
}

let open: Shop | undefined;

for (const [signal, number] of Object.entries(SIGNALS)) {
  process.once(signal, () => {
    interrupted = true;
    print('', 'Interrupted: the processes are being stopped.');
    const cleared = open === undefined ? Promise.resolve() : clearStock(open.replicas);
    void cleared.then(stopChildren).then(() => process.exit(128 + number));
  });
}

try {
  process.exitCode = (await start()) ? 0 : 1;
} catch (error) {
  const { message, cause } = error as Error;
  if (!interrupted) print('', `✗ ${message}${cause ? `: ${(cause as Error).message}` : ''}`);
  process.exitCode = 1;
} finally {
  await stopChildren();
}
