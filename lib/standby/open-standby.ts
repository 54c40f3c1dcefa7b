import type { LockBackend } from '../backends/lock-backend.js';
import { QuorumBackend } from '../backends/quorum/quorum-backend.js';
import { MemoryBackend } from '../backends/redis/in-process/memory-backend.js';
import { RedisBackend } from '../backends/redis/redis-backend.js';
import { LockConfigurationError } from '../engine/errors.js';
import type { Standby } from '../engine/hold/standby.js';
import { cloneSettings } from './clone-settings.js';
import { type StandbySettings, ThreadStandby } from './loop-side.js';
import type { ClonedServers } from './messages.js';

/** Gaps between the signs of life of an event loop that is not blocked are as long as a large part of such a lease. */
const SHORT_LEASE = 3_000;

/**
 * The standby of a service with the option `keepWhileBlocked`. Locks in memory need none.
 *
 * @throws LockConfigurationError when another thread could not renew the locks
 */
export function openStandby(
  backend: LockBackend,
  settings: Omit<StandbySettings, 'servers'>,
  warn: (message: string) => void,
): Standby | undefined {
  if (settings.keepWhileBlocked === 0 || backend instanceof MemoryBackend) return undefined;
  const servers = () => serversOf(backend);
  const standby = new ThreadStandby({ ...settings, servers });
  if (settings.watchdogTimeout < SHORT_LEASE)
    warn(
      `keepWhileBlocked: watchdogTimeout is ${settings.watchdogTimeout} ms. Below ${SHORT_LEASE} ms, the thread has time for one try before a lease ends. Make watchdogTimeout longer`,
    );
  return standby;
}

/** @throws LockConfigurationError */
function serversOf(backend: LockBackend): ClonedServers {
  const isQuorum = backend instanceof QuorumBackend;
  const nodes = isQuorum ? backend.members : [backend];
  const connections = nodes.map((node, n) => clonedSettings(node, isQuorum ? `quorum[${n}]` : 'connection'));
  return { connections, isQuorum };
}

/** @throws LockConfigurationError */
function clonedSettings(backend: LockBackend, option: string): unknown {
  if (!(backend instanceof RedisBackend))
    refuse('the backend is not one of this library on Redis, so no other thread can renew its locks');
  try {
    return cloneSettings(backend.settings, option);
  } catch (error) {
    refuse(
      `${(error as Error).message}, which cannot be given to another thread. Write the setting as a value, or leave out keepWhileBlocked`,
    );
  }
}

function refuse(why: string): never {
  throw new LockConfigurationError(`RedisLockModule: keepWhileBlocked: ${why}`);
}
