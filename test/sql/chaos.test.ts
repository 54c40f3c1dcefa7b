import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { SeededRandom } from '../support/seeded-random.js';
import { SQL_SERVERS } from '../support/sql/sql-server.js';
import { openSqlWorld } from './sql-world.js';

const LOADER = fileURLToPath(new URL('../support/typescript-loader.mjs', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../support/processes/row-lock-holder.ts', import.meta.url));
const LEASE = 2_000;
const DURATION = 25_000;

interface Tenure {
  readonly process: number;
  readonly token: number;
  readonly from: number;
  /** `undefined`: its process was killed, or had lost the lock. */
  until?: number;
}

/** Several processes take one lock in turn, while holders are killed and stopped, and the server is killed. */
describe.each(SQL_SERVERS)('row locks under faults, %s', (kind) => {
  const world = openSqlWorld(kind);

  it('never overlap, and have growing tokens', async () => {
    const tenures: Tenure[] = [];
    const running: ChildProcess[] = [];
    const start = (slot: number) => {
      const parameters = ['--import', LOADER, PROGRAM, world.server.url, 'chaos', String(LEASE), '60'];
      const child = spawn(process.execPath, parameters, { stdio: ['ignore', 'pipe', 'ignore'] });
      running[slot] = child;
      let rest = '';
      child.stdout.on('data', (text) => {
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) record(line, child.pid as number);
      });
    };
    const record = (line: string, id: number) => {
      const [event, token, time] = line.split(' ');
      if (event === 'in') tenures.push({ process: id, token: Number(token), from: Number(time) });
      const own = tenures.find((tenure) => tenure.process === id && tenure.token === Number(token));
      if (event === 'out' && own !== undefined) own.until = Number(time);
    };
    const random = new SeededRandom(11);
    for (let slot = 0; slot < 4; slot++) start(slot);
    try {
      const end = Date.now() + DURATION;
      let round = 0;
      while (Date.now() < end) {
        await sleep(700 + random.next() * 800);
        const slot = Math.floor(random.next() * running.length);
        const child = running[slot];
        if (++round % 7 === 0) {
          await world.server.kill();
          await startAgain();
        } else if (round % 2 === 0) {
          child.kill('SIGKILL');
          start(slot);
        } else {
          child.kill('SIGSTOP');
          await sleep(round % 3 === 0 ? LEASE + 1_500 : 300);
          child.kill('SIGCONT');
        }
      }
    } finally {
      for (const child of running) child.kill('SIGKILL');
    }
    expect(tenures.length).toBeGreaterThan(30);
    expect(overlaps(tenures)).toEqual([]);
    const byTime = [...tenures].sort((a, b) => a.from - b.from || a.token - b.token);
    expect(byTime.filter(({ token }, n) => n > 0 && token <= byTime[n - 1].token)).toEqual([]);
  });

  const startAgain = async () => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await world.server.start();
      } catch (error) {
        if (attempt === 40) throw error;
        await sleep(250);
      }
    }
  };
});

/** Tenures that had not ended, by their own process's account, when another one began. One clock: the processes are on one machine. */
function overlaps(tenures: readonly Tenure[]): unknown[] {
  return tenures.flatMap((tenure) =>
    tenures
      .filter(({ from, until }) => until !== undefined && from < tenure.from && tenure.from < until)
      .map((other) => [other, tenure]),
  );
}
