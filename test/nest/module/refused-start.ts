import { once } from 'node:events';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { startProcess } from '../../support/processes/start-process.js';

type Connection = RedisLockOptions['connection'];

/** Tests that a process ends after NestJS has refused to start its application. */
export function refusedStart(connection: () => Connection) {
  return async (reason: string, says: RegExp): Promise<void> => {
    const { child, line } = await startProcess('refused-start.ts', JSON.stringify(connection()), reason);
    try {
      expect(line).toMatch(says);
      if (child.exitCode === null) await once(child, 'exit', { signal: AbortSignal.timeout(10_000) });
      expect(child.exitCode).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
  };
}
