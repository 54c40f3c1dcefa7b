// npm run bench -- thread: what the thread of keepWhileBlocked costs: its start, its memory, and its CPU time while the
// event loop is blocked. Each row is the median of some processes. Without the thread, a process is the same in all else.
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROUNDS = 3;
const LEASES = [1, 1_000, 100_000];
/** Milliseconds. Leases are 30 s, so the thread renews each of them twice. */
const BLOCK = 25_000;

if (process.argv[2] === 'child') await measure(JSON.parse(process.argv[3]));
else await compare();

async function measure({ url, keepWhileBlocked, leases, block }) {
  const { createLockService } = await import('../../dist/esm/core.js');
  const logger = { warn: () => {}, error: console.error };
  const begin = performance.now();
  const locks = createLockService({ connection: url, keepWhileBlocked, commandTimeout: 20_000, logger });
  await locks.started();
  const first = await locks.acquire('first');
  const start = performance.now() - begin;
  const held = [first];
  while (held.length < leases)
    held.push(...(await Promise.all(Array.from({ length: 999 }, (_, n) => locks.acquire(`${held.length}:${n}`)))));
  await sleep(2_000);
  const idle = process.cpuUsage();
  if (leases === 1) await sleep(10_000);
  const atRest = process.cpuUsage(idle);
  const memory = process.memoryUsage().rss;
  const before = process.cpuUsage();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, block);
  const { user, system } = process.cpuUsage(before);
  const kept = held.filter((lease) => lease.held).length;
  const cpu = (user + system) / block;
  console.log(JSON.stringify({ start, memory, atRest: (atRest.user + atRest.system) / 10_000, cpu, kept }));
  process.exit();
}

async function compare() {
  const { startRedis } = await import('../support/servers/redis-server.ts');
  const server = await startRedis();
  const run = async (options) => {
    await server.client().flushall();
    const args = [fileURLToPath(import.meta.url), 'child', JSON.stringify({ url: server.url, ...options })];
    return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
  };
  const median = (values) => values.sort((one, other) => one - other)[values.length >> 1];
  try {
    const rows = { without: [], with: [] };
    for (let round = 0; round < ROUNDS; round++)
      for (const [side, keepWhileBlocked] of [
        ['without', 0],
        ['with', '10m'],
      ])
        rows[side].push(await run({ keepWhileBlocked, leases: 1, block: 1 }));
    for (const [side, all] of Object.entries(rows)) {
      const of = (what) => median(all.map((row) => row[what]));
      console.log(
        `${side} keepWhileBlocked: ${of('start').toFixed(0)} ms until the first lock, ${(of('memory') / 2 ** 20).toFixed(1)} MB, ${of('atRest').toFixed(2)} ms CPU a second at rest with one lease`,
      );
    }
    for (const leases of LEASES) {
      const { cpu, kept } = await run({ keepWhileBlocked: '10m', leases, block: BLOCK });
      console.log(
        `blocked for ${BLOCK / 1_000} s with ${leases} leases: ${cpu.toFixed(2)} ms CPU a second; ${kept} kept`,
      );
    }
  } finally {
    await server.stop();
  }
}
