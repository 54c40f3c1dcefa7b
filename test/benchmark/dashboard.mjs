// The cost of the dashboard with 5,000 held locks and 200 waiters, all of another process.
//   npm run bench -- dashboard [ <locks> <waiters> <seconds>]
// Needs redis-server and a Chromium (CHROMIUM, or one of the PATH).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { provideChromium } from '../../.ci/servers/install.mjs';
import { freePort, load, serve } from './dashboard-processes.mjs';

const [held = 5_000, waiters = 200, seconds = 20] = process.argv.slice(2).map(Number);
const TICKS = 100; // of /proc/<pid>/stat in a second
const LIBRARY = new URL('../../dist/esm/', import.meta.url);

const ROLES = {
  load: () => load(LIBRARY, held, waiters),
  serve: async () => process.send(await serve(LIBRARY)),
  measure,
};
await ROLES[process.env.DASHBOARD_ROLE ?? 'measure']();

async function measure() {
  const executablePath = provideChromium();
  if (executablePath === undefined) throw new Error('There is no Chromium: install one, or give its path as CHROMIUM');
  const port = await freePort();
  const redis = spawn('redis-server', ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], {
    stdio: 'ignore',
  });
  const children = [redis];
  try {
    await sleep(1_000);
    const env = { ...process.env, REDIS: `redis://127.0.0.1:${port}` };
    const start = async (role) => {
      const args = [String(held), String(waiters)];
      const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...args], {
        env: { ...env, DASHBOARD_ROLE: role },
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      children.push(child);
      const [message] = await once(child, 'message');
      return { child, message };
    };
    await start('load');
    const { child: server, message: url } = await start('serve');
    const idle = await overSeconds(5, () => [cpuOf(server.pid), cpuOf(redis.pid)]);

    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
    const page = await browser.newPage();
    await page.addInitScript(() => {
      globalThis.sizes = [];
      globalThis.EventSource = class extends EventSource {
        constructor(...args) {
          super(...args);
          this.addEventListener('message', ({ data }) => globalThis.sizes.push(data.length));
        }
      };
    });
    const started = performance.now();
    await page.goto(`${url}/locks`);
    await page.waitForSelector('tbody tr');
    const firstTable = performance.now() - started;
    const chromiumCpu = () => treeOf(browserPid()).reduce((sum, pid) => sum + cpuOf(pid), 0);
    const [ofServer, ofRedis, ofChromium] = await overSeconds(seconds, () => [
      cpuOf(server.pid),
      cpuOf(redis.pid),
      chromiumCpu(),
    ]);
    const sizes = await page.evaluate(() => globalThis.sizes);
    const { summary } = await (await fetch(`${url}/locks/api/board`)).json();
    await browser.close();
    // Without the heartbeats.
    const [first, ...updates] = sizes.filter((size) => size > 100);
    console.log(`${summary.held} locks held, ${summary.waiting} callers wait; Node.js ${process.version}`);
    console.log(`time to the first table   ${Math.round(firstTable)} ms (a snapshot takes ${summary.took} ms)`);
    console.log(
      `first message             ${kB(first)}; updates: ${updates.length} in ${seconds} s, median ${kB(median(updates))}, largest ${kB(Math.max(...updates))}`,
    );
    console.log(`CPU of the application    ${percent(ofServer)} of a core (without a viewer ${percent(idle[0])})`);
    console.log(`CPU of redis-server       ${percent(ofRedis)} (without a viewer ${percent(idle[1])})`);
    console.log(`CPU of Chromium           ${percent(ofChromium)}, all of its processes`);
  } finally {
    for (const child of children.reverse()) child.kill();
  }
}

/** CPU seconds of a process so far. */
function cpuOf(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS;
  } catch {
    return 0;
  }
}

function parents() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [
          [
            Number(pid),
            Number(
              readFileSync(`/proc/${pid}/stat`, 'utf8')
                .replace(/^.*\) /, '')
                .split(' ')[1],
            ),
          ],
        ];
      } catch {
        return [];
      }
    });
}

/** A process and all its descendants. */
function treeOf(root) {
  const all = parents();
  const tree = new Set([root]);
  for (const pid of tree) for (const [child, parent] of all) if (parent === pid) tree.add(child);
  return [...tree];
}

/** The child of this process that is the browser. */
function browserPid() {
  const own = parents()
    .filter(([, parent]) => parent === process.pid)
    .map(([pid]) => pid);
  return own.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--remote-debugging'));
}

async function overSeconds(time, read) {
  const before = read();
  await sleep(time * 1_000);
  return read().map((value, n) => (value - before[n]) / time);
}

function median(values) {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)];
}

function kB(bytes) {
  return `${(bytes / 1_000).toFixed(1)} kB`;
}

function percent(share) {
  return `${Math.round(share * 100)} %`;
}
