// A process of one contestant. crew/node-crew.ts gives it its tasks.
import type { LockClient } from '../contestants/contestant.js';
import { contestantOf } from '../contestants/contestants.js';
import { DecoratedCalls } from './decorated-calls.js';
import { duel } from './duel.js';
import { HeldLeases } from './held-leases.js';
import { runLoop } from './lock-loop.js';
import { refusals } from './refusals.js';
import { countIoredis } from './sent-commands.js';
import { serve } from './serve.js';
import type { Tasks } from './tasks.js';
import { WaitingCrowd } from './waiting-crowd.js';

const clients: LockClient[] = [];
const rivals = new Map<string, LockClient>();
let server: number;
let crowd: WaitingCrowd;
let leases: HeldLeases;
const calls = new DecoratedCalls();

async function rivalOf(name: string): Promise<LockClient> {
  const rival = rivals.get(name) ?? (await contestantOf(name).open!(server));
  rivals.set(name, rival);
  return rival;
}

const tasks: Omit<Tasks, 'contend'> = {
  async open(name, port, connections) {
    const { open } = contestantOf(name);
    server = port;
    while (clients.length < connections) clients.push(await open!(port));
  },
  loop: (job) => runLoop(clients, job),
  async duel(name, key, turns) {
    return duel([clients[0], await rivalOf(name)], key, turns);
  },
  async refuse(name, key, callers, turns) {
    const rival = await rivalOf(name);
    const held = [await clients[1].acquire(key), await rival.acquire(key)];
    const times = await refusals([clients[0], rival], key, callers, turns);
    await clients[1].release(held[0]);
    await rival.release(held[1]);
    return times;
  },
  gather(key, count) {
    crowd = new WaitingCrowd(clients[0], clients[1]);
    return crowd.gather(key, count);
  },
  watch: (duration) => crowd.watch(duration),
  drain: (patience) => crowd.drain(patience),
  take(key, count) {
    leases = new HeldLeases(clients[0]);
    return leases.take(key, count);
  },
  keep: (duration) => leases.keep(duration),
  call: (method, count) => calls.call(method, count),
};

countIoredis();
serve(tasks);
