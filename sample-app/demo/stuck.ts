import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { extname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { inspect, promisify } from 'node:util';
import { createLockService } from 'nestjs-redis-lock/core';
import type { Replica, Shop } from './shop.js';

/** Seconds. */
export const STUCK_FOR = 40;

/** The payment provider does not answer, and the nightly report keeps quiet. */
export const NEVER_PAID = { PAYMENT_TIME: '3600000', REPORT_CRON: '0 0 3 1 1 *' };

export const TELEMETRY = new URL(`./telemetry${extname(import.meta.url)}`, import.meta.url).href;

/** A waiter logs a line after this many seconds. */
const LONG_WAIT = 30;
const PATIENCE = 10_000;

/** How often a line says how far the wait is, in seconds. */
const PROGRESS = 10;

export interface StuckOptions {
  readonly seconds: number;
  /** Print what every tool says, as it says it; else what matters of it. */
  readonly all: boolean;
  readonly print: (...lines: string[]) => void;
}

/**
 * An order on the first process is stuck with the lock of its article, and a delivery on the second one waits for it.
 * Prints what each tool says about it, then releases the lock by force.
 *
 * @returns whether every tool had something to say, and the delivery was booked in the end
 */
export async function stuckLock({ redis, replicas }: Shop, { seconds, all, print }: StuckOptions): Promise<boolean> {
  const [first, second] = replicas;
  if (!redis || !first || !second)
    throw new Error('--stuck needs two processes that share a Redis: install redis-server, or set REDIS_URL');
  const sku = `lamp-${randomBytes(3).toString('hex')}`;
  const name = `sku:${sku}`;
  let complete = true;
  const show = (heading: string, text: string | undefined, shorten?: (text: string) => string) => {
    complete &&= text !== undefined;
    const shown = text === undefined ? '✗ nothing' : all || shorten === undefined ? text : shorten(text);
    if (shown === '') return;
    print('', `── ${heading} ${'─'.repeat(Math.max(0, 76 - heading.length))}`, ...shown.trimEnd().split('\n'));
  };
  const cli = async (args: string[], shorten?: (text: string) => string) => {
    const shown = args.map((arg) => (/\s/.test(arg) ? `'${arg}'` : arg)).join(' ');
    show(`npx nestjs-redis-lock ${shown}`, await runCli(args, redis.url), shorten);
  };

  await first.ask('PUT', `/stock/${sku}`, { quantity: 40 });
  const leave = new AbortController();
  const ordered = first.ask('POST', '/orders', { sku, quantity: 1 }, leave.signal).catch(() => {});
  try {
    await untilLocked(redis.url, name);
    const delivered = second.ask('POST', `/stock/${sku}/deliveries`, { quantity: 10 }, leave.signal);
    delivered.catch(() => {});
    print('', `An order in ${first.name} holds the lock '${name}': the payment provider does not answer.`);
    print(
      `A delivery in ${second.name} waits for that lock${seconds > LONG_WAIT ? `, and logs it after ${LONG_WAIT} s` : ''}.`,
    );
    for (let waited = 0; waited < seconds; waited += PROGRESS) {
      if (waited > 0) print(`… ${waited} of ${seconds} s`);
      await sleep(Math.min(PROGRESS, seconds - waited) * 1_000);
    }

    const long = seconds > LONG_WAIT;
    const line = await second.program.printed(/^.*A caller has waited for the lock .*$/m, long ? PATIENCE : 0);
    show(`the log of ${second.name}`, line?.[0] ?? (long ? undefined : `(a line comes after ${LONG_WAIT} s)`));
    show(`await locks.inspect('${name}')`, await inspectLock(redis.url, name), nothing);
    await cli(['inspect', name], nothing);
    await cli(['ls']);
    await cli(['clients'], nothing);
    for (const replica of replicas) show(`GET /metrics of ${replica.name}`, await gauges(replica), withoutZeros);
    const { body } = await second.ask('GET', `/locks/api/board?search=${sku}`);
    show(`GET ${second.url}/locks/api/board`, JSON.stringify(body, null, 2), waitersOnly);
    await cli(['release', name, '--yes', '--reason', 'the payment provider is down']);

    const { status, body: stock } = await delivered;
    complete &&= status === 201;
    show(`${second.name} goes on`, `delivered: ${status} ${JSON.stringify(stock)}`);
    for (const [{ name: replica, program }, span] of [
      [first, 'lock hold'],
      [second, 'lock acquire'],
    ] as const)
      show(`a span of ${replica}`, (await program.printed(spanPattern(span), PATIENCE))?.[0], essenceOfSpan);
    if (!all) print('', 'With --all, it prints everything that each tool says.');
    return complete;
  } finally {
    leave.abort();
    await ordered;
    await second.ask('DELETE', `/stock/${sku}`).catch(() => {});
  }
}

/** Another tool says the same. */
const nothing = () => '';

const withoutZeros = (page: string) =>
  page
    .split('\n')
    .filter((line) => !line.endsWith(' 0'))
    .join('\n');

/** The rest of a row is what the command line has shown. */
function waitersOnly(board: string): string {
  const { locks } = JSON.parse(board) as { locks: { rows: { waiters: object[] }[] } };
  return locks.rows.flatMap(({ waiters }) => waiters.map((waiter) => JSON.stringify({ waiter }))).join('\n');
}

/** Name, duration and outcome, and whose they are. */
function essenceOfSpan(span: string): string {
  return (span.match(/^ +(name: 'lock|duration|'distributed_lock\.(method|name|outcome)|message:).*$/gm) ?? []).join(
    '\n',
  );
}

async function runCli(args: readonly string[], url: string): Promise<string> {
  const entry = import.meta.resolve('nestjs-redis-lock');
  const program = fileURLToPath(new URL(`./cli${extname(entry)}`, entry));
  const env = { ...process.env, REDIS_URL: url };
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, program, ...args], { env });
  return stdout;
}

async function untilLocked(url: string, name: string): Promise<void> {
  const locks = createLockService({ connection: url });
  try {
    const deadline = performance.now() + PATIENCE;
    while (!(await locks.isLocked(name))) {
      if (performance.now() > deadline) throw new Error(`'${name}' was not locked`);
      await sleep(20);
    }
  } finally {
    await locks.close();
  }
}

async function inspectLock(url: string, name: string): Promise<string> {
  const locks = createLockService({ connection: url });
  try {
    return inspect(await locks.inspect(name), { depth: 4 });
  } finally {
    await locks.close();
  }
}

/** What its page for Prometheus says about locks that are held or waited for now. */
async function gauges({ program }: Replica): Promise<string | undefined> {
  const [, page] = (await program.printed(/^metrics: (http:\S+)$/m, PATIENCE)) ?? [];
  if (page === undefined) return undefined;
  const lines = (await (await fetch(page)).text()).split('\n');
  return lines.filter((line) => /^distributed_lock_(held|waiting)\b/.test(line)).join('\n') || undefined;
}

/** A span as the console exporter prints it. */
function spanPattern(title: string): RegExp {
  return new RegExp(`^\\{\\n(?:(?!^\\}$)[^])*?name: '${title} sku:(?:(?!^\\}$)[^])*?^\\}$`, 'm');
}
