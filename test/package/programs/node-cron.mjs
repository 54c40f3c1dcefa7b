// Two replicas of a task that is due every second, with the recipe of docs/cron-jobs.md. Prints how often it ran.
import { createLockService } from 'nestjs-redis-lock/core';
import cron from 'node-cron';
import { lockCoordinator } from './coordinator.js';

const SECONDS = 4;
const errors = [];
const logger = { log() {}, warn: (message) => errors.push(message), error: (message) => errors.push(message) };
const services = [1, 2].map(() => createLockService({ connection: process.env.REDIS_URL, logger }));
await Promise.all(services.map((locks) => locks.connect()));

/** What each replica did, by the second at which the task was due. */
const ran = services.map(() => new Set());
const left = services.map(() => new Set());
const tasks = services.map((locks, n) => {
  const options = { name: 'report', distributed: true, runCoordinator: lockCoordinator(locks) };
  const task = cron.schedule('* * * * * *', ({ date }) => void ran[n].add(date.toISOString()), options);
  task.on('execution:skipped', ({ date, reason }) => {
    if (reason === 'not-elected') left[n].add(date.toISOString());
    else errors.push(reason);
  });
  return task;
});

const seenBy = (n) => new Set([...ran[n], ...left[n]]);
const common = () => [...seenBy(0)].filter((time) => seenBy(1).has(time));
while (common().length < SECONDS) await new Promise((resolve) => setTimeout(resolve, 50));
for (const task of tasks) await task.destroy();
const times = common();
const count = (sets) => times.reduce((sum, time) => sum + sets.filter((set) => set.has(time)).length, 0);
console.log(JSON.stringify({ times: times.length, runs: count(ran), skipped: count(left), errors }));
await Promise.all(services.map((locks) => locks.close()));
process.exit();
