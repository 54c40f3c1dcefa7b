// Run by peer-run.ts as a separate process: callers of one library that hold one lock in turns, and print what they
// observe, until the input ends. Its argument is a PeerSpec as JSON.
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Observable } from 'rxjs';
import { LiveHeap } from '../support/runtime/live-heap.mjs';
import { OPEN } from './libraries.mjs';

const { process: title, library, settings, callers, body, wait, pause } = JSON.parse(process.argv[2]);
/** How often a body asks whether it still holds the lock, in milliseconds. */
const STEP = 10;
const NAME = 'lock';

const now = () => Number(process.hrtime.bigint()) / 1e6;
const say = (record, at = now()) => process.stdout.write(`${JSON.stringify({ at, process: title, ...record })}\n`);

// An application would end here, unless it has such a listener, too.
const unhandled = (error) => say({ kind: 'unhandled', message: String(error?.message ?? error) });
process.on('unhandledRejection', unhandled).on('uncaughtException', unhandled);
process.removeAllListeners('warning').on('warning', ({ message }) => say({ kind: 'warned', message }));

const opened = await OPEN[library](settings);
let calls = 0;
let running = true;
const loops = [];

/**
 * Works for `time` ms, or as long as the task takes, and stops when the library says that the lock is lost.
 *
 * @param {number | (() => Promise<void>)} time
 */
async function work(call, time, isHeld) {
  say({ kind: 'granted', call });
  let end = typeof time === 'number' ? now() + time : Number.POSITIVE_INFINITY;
  const task = typeof time === 'number' ? undefined : time();
  task?.finally(() => {
    end = now() + 2 * STEP;
  });
  while (now() < end) {
    await sleep(Math.min(STEP, Math.max(1, end - now())));
    const at = now();
    if (isHeld()) say({ kind: 'held', call }, at);
    else {
      say({ kind: 'lost', call }, at);
      break;
    }
  }
  say({ kind: 'release-asked', call });
}

/** @returns whether it has got the lock */
async function call(time = body, patience = wait) {
  const name = `${title}/${++calls}`;
  let isInside = false;
  say({ kind: 'sent', call: name });
  try {
    await opened.hold(NAME, patience, async (isHeld) => {
      isInside = true;
      await work(name, time, isHeld);
    });
    say({ kind: 'returned', call: name });
  } catch (error) {
    say({ kind: isInside ? 'failed' : 'refused', call: name, error: error.name, message: String(error.message) });
  }
  return isInside;
}

async function loop() {
  while (running) {
    await call();
    await sleep(pause * Math.random());
  }
}

/** A method that returns an Observable, whose work begins when somebody subscribes to it. */
async function observe(time) {
  const name = `${title}/${++calls}`;
  const source = new Observable((subscriber) => {
    work(name, time, () => true).then(() => subscriber.complete());
  });
  say({ kind: 'sent', call: name });
  try {
    const result = opened.observe(() => source);
    const stream = typeof result?.subscribe === 'function' ? result : await result;
    await new Promise((resolve, reject) => stream.subscribe({ error: reject, complete: resolve }));
    say({ kind: 'returned', call: name });
  } catch (error) {
    say({ kind: 'refused', call: name, error: error.name, message: String(error.message) });
  }
}

async function block(time) {
  await sleep(10 * STEP);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, time);
}

async function collect(time, patience) {
  const heap = await LiveHeap.fill();
  await call(async () => say({ kind: 'collected', longest: await heap.churn(time) }), patience);
}

async function insist(time, patience) {
  while (!(await call(time, patience)));
}

const commands = {
  go: () => loops.push(...Array.from({ length: callers }, loop)),
  once: (time, patience) => loops.push(call(time, patience)),
  insist: (time, patience) => loops.push(insist(time, patience)),
  observe: (time) => loops.push(observe(time)),
  block: (time, patience) => loops.push(call(() => block(time), patience)),
  collect: (time, patience) => loops.push(collect(time, patience)),
};
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const [command, ...numbers] = line.split(' ');
    commands[command](...numbers.map(Number));
  })
  .once('close', async () => {
    running = false;
    await Promise.all(loops);
    say({ kind: 'ended' });
    await Promise.race([Promise.resolve(opened.close()).catch(() => {}), sleep(1_000)]);
    process.exit();
  });
say({ kind: 'ready' });
