// A separate process that holds locks of many kinds and blocks its event loop. It prints a line of JSON for each thing that
// happens. Its arguments are <connection as JSON> <options as JSON> <kinds, joined by commas> <ms to block>.
import type { LockEngine } from '../../../lib/engine/lock-engine.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { blockEventLoop } from '../runtime/block-event-loop.js';

const [connection, options, kinds, time] = process.argv.slice(2);
const say = (what: object) => process.stdout.write(`${JSON.stringify(what)}\n`);
const locks = createLockService({
  ...JSON.parse(connection),
  ...JSON.parse(options),
  logger: { warn: (warning) => say({ warning }), error: (error) => say({ error }) },
});
locks.on('blocked', (blocked) => say({ blocked }));
locks.on('lost', ({ name, error }) => say({ lost: name, why: error.message }));

interface Held {
  readonly held: boolean;
  readonly signal: AbortSignal;
  remainingTime(): number;
}

let endBodies = () => {};
const ended = new Promise<void>((resolve) => {
  endBodies = resolve;
});
const started: Promise<void>[] = [];
const done: Promise<unknown>[] = [];
const look: (() => void)[] = [];

/** Runs a body that says, right after the block and in the same turn, what it believes. */
function hold(kind: string, run: (body: (lease: Held) => Promise<string>) => Promise<unknown>): void {
  started.push(
    new Promise((resolve) => {
      const body = async (lease: Held) => {
        resolve();
        look.push(() => {
          const left = 'remainingTime' in lease ? Math.round(lease.remainingTime()) : undefined;
          say({ kind, held: lease.held, left, aborted: lease.signal.aborted });
        });
        await ended;
        return 'result';
      };
      done.push(
        run(body).then(
          (result) => say({ kind, result }),
          (error: Error) => say({ kind, failed: error.message }),
        ),
      );
    }),
  );
}

const HOLDS: Record<string, () => void> = {
  reentrant: () => hold('reentrant', (body) => locks.withLock('reentrant', body)),
  fair: () => hold('fair', (body) => locks.withLock('fair', { type: 'fair' }, body)),
  fenced: () => hold('fenced', (body) => locks.withLock('fenced', { type: 'fenced' }, body)),
  read: () => hold('read', (body) => locks.withLock('rw', { type: 'read' }, body)),
  write: () => hold('write', (body) => locks.withLock('w', { type: 'write' }, body)),
  permits: () => hold('permits', (body) => locks.withLock('permits', { permits: 2 }, body)),
  several: () => hold('several', (body) => locks.withLock(['several:1', 'several:2'], body)),
  flight: () => hold('flight', (body) => locks.singleFlight('flight', (lease) => body(lease))),
  long: () => hold('long', (body) => locks.withLock(`long:${'n'.repeat(900)}`, body)),
  semaphore: () =>
    hold('semaphore', async (body) => {
      const semaphore = locks.getPermitExpirableSemaphore('semaphore');
      await semaphore.trySetPermits(1);
      return semaphore.withPermit(({ signal }) => body({ held: true, signal, remainingTime: () => 0 }));
    }),
  leader: () => {
    started.push(
      new Promise((resolve) => {
        const leadership = locks.lead('leader', {
          onElected: async () => {
            resolve();
            await ended;
          },
        });
        look.push(() => say({ kind: 'leader', held: leadership.isLeader, aborted: false }));
        done.push(ended.then(() => leadership.stop()).then(() => say({ kind: 'leader', result: 'result' })));
      }),
    );
  },
  extended: () =>
    hold('extended', (body) =>
      locks.withLock('extended', async (lease) => {
        await lease.extend(5_000);
        return body(lease);
      }),
    ),
  atMost: () => hold('atMost', (body) => locks.withLock('atMost', { holdAtMost: 1_000 }, body)),
  atLeast: () =>
    hold('atLeast', async (body) => {
      const { engine } = locks as unknown as { engine: LockEngine };
      return engine.holdWhile(await engine.acquire('atLeast'), body, Number(time) + 700);
    }),
  /** Held for long enough to be in the record of its client. */
  recorded: () =>
    hold('recorded', async (body) => {
      const lease = await locks.acquire('recorded');
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return lease.run(body);
    }),
  handOff: () =>
    hold('handOff', async (body) => {
      const first = await locks.acquire('handOff');
      const next = locks.withLock('handOff', body);
      await first.release();
      return next;
    }),
  detached: () =>
    hold('detached', async (body) => {
      const lease = await locks.acquire('detached');
      const result = await body(lease);
      say({ ticket: await lease.detach({ for: 500 }) });
      return result;
    }),
  reentry: () =>
    hold('reentry', (body) => locks.withLock('reentry', () => locks.withLock('reentry', { holdAtMost: 1_000 }, body))),
};

for (const kind of kinds.split(',')) {
  HOLDS[kind]();
  await started.at(-1);
}
say({ ready: true });
await new Promise((resolve) => setTimeout(resolve, 20));
blockEventLoop(Number(time));
for (const saying of look) saying();
endBodies();
await Promise.all(done);
say({ done: true });
await locks.close();
