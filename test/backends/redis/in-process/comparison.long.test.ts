import fc from 'fast-check';
import { scripts } from '../../../../lib/backends/redis/scripts.js';
import { RedisWorld } from '../redis-world.js';
import { ROUNDED_TO, scenes } from './random-calls.js';
import { TwinServers } from './twin-servers.js';

/** COMPARISONS=100000 for a night. */
const SCENES = Number(process.env.COMPARISONS ?? 1_000);

describe('the server in this process, beside Redis', () => {
  const world = new RedisWorld();

  it(
    'answers, keeps and publishes the same',
    async () => {
      const twins = new TwinServers(world.redis, world.server.client());
      await twins.open();
      const called = new Map<string, number>();
      await fc.assert(
        fc.asyncProperty(scenes, async (steps) => {
          await twins.clear();
          const began = performance.now();
          for (const [i, step] of steps.entries()) {
            const [redis, here] = await twins.both(step);
            // On a busy machine: the clock of Redis has moved too far.
            if (performance.now() - began > ROUNDED_TO / 4) return;
            const at = { step: i, what: step };
            expect({ ...at, ...here }).toEqual({ ...at, ...redis });
            if ('script' in step) called.set(step.script, (called.get(step.script) ?? 0) + 1);
          }
        }),
        { numRuns: SCENES, endOnFailure: process.env.COMPARISONS === undefined },
      );
      // Each script was called, and most of them often.
      expect([...called.keys()].sort()).toEqual(Object.keys(scripts).sort());
    },
    Math.max(90_000, SCENES * 1_000),
  );
});
