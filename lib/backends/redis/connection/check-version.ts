import { BackendError } from '../../lock-backend.js';

/** The oldest Redis whose commands the scripts use. */
const OLDEST = [6, 2] as const;

/**
 * Checks the version that a server reports. A server that reports none counts as new enough.
 *
 * @param info the reply to INFO, or `''` if the user may not ask
 * @throws BackendError when it is too old
 */
export function checkVersion(info: string, server: string): void {
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
