import { BackendError } from '../../lock-backend.js';

/** The oldest Redis whose commands the scripts use. */
const OLDEST = [6, 2] as const;

/**
 * Checks that a server can keep locks: that it is not a Sentinel, and new enough. A server that does not say what it is
 * passes.
 *
 * @param info the reply to INFO, or `''` if the user may not ask
 * @throws BackendError when it cannot be used
 */
export function checkServer(info: string, server: string): void {
  const masters = sentinelMasters(info);
  if (masters !== undefined) {
    throw new BackendError(
      `${server}: a Sentinel answered, which has no locks. Give its address in sentinels, with the name of its master (node-redis: sentinelRootNodes and name), or give the address of the master: ${masters}`,
      'denied',
      'refused',
    );
  }
  const [, version, major, minor] = /^redis_version:((\d+)\.(\d+)\S*)/m.exec(info) ?? [];
  if (version === undefined) return;
  const isOld = Number(major) < OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) < OLDEST[1]);
  if (!isOld) return;
  throw new BackendError(
    `${server}: Redis ${version} is too old; nestjs-redis-lock needs Redis ${OLDEST.join('.')} or later, or Valkey`,
    'denied',
    'refused',
  );
}

/**
 * Warns about a server that evicts keys when its memory is full. It could evict a lock that is held, and then grant it
 * again.
 */
export function warnOfEviction(info: string, server: string, warn: (message: string) => void): void {
  const limit = /^maxmemory:(\d+)/m.exec(info)?.[1] ?? '0';
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction';
  if (limit === '0' || policy === 'noeviction') return;
  warn(
    `${server}: maxmemory-policy is '${policy}', so Redis may evict locks that are held and grant them twice. Set it to 'noeviction', or use a separate Redis for locks`,
  );
}

/**
 * The masters that a Sentinel watches, for errors. Undefined for another server.
 *
 * @param info its reply to INFO
 */
export function sentinelMasters(info: string): string | undefined {
  if (/^(?:redis|server)_mode:(\w+)/m.exec(info)?.[1] !== 'sentinel') return undefined;
  const masters = [...info.matchAll(/^master\d+:name=(.*?),.*?address=(.*?),/gm)];
  return masters.map(([, name, address]) => `${address} ('${name}')`).join(', ') || 'it watches none';
}

/**
 * The name and version of a server, for logs: `Redis 7.4.1`.
 *
 * @param info the reply to INFO; `''` if the user has no permission for INFO
 */
export function serverName(info: string): string {
  const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
  const redis = /^redis_version:(\S+)/m.exec(info)?.[1];
  if (valkey !== undefined) return `Valkey ${valkey}`;
  return redis === undefined ? 'a server that does not say its version' : `Redis ${redis}`;
}
