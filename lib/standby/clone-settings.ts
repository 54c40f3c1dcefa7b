import { KeyObject } from 'node:crypto';
import { lookup } from 'node:dns';

/** Functions that say when to try again. The thread has its own. */
const ABOUT_WHEN = [
  'retryStrategy',
  'sentinelRetryStrategy',
  'sentinelReconnectStrategy',
  'clusterRetryStrategy',
  'clusterNodeRetryStrategy',
  'reconnectOnError',
  'reconnectStrategy',
];

/**
 * A copy of a `connection` option that can be given to another thread.
 *
 * @param path how the error names the settings
 * @throws Error that names the setting which cannot be given away: a function about where the servers are, who connects,
 *   or whom to trust
 */
export function cloneSettings(value: unknown, path: string): unknown {
  if (typeof value === 'function') throw new Error(`${path} is a function`);
  if (typeof value !== 'object' || value === null) return value;
  if (ArrayBuffer.isView(value) || value instanceof KeyObject) return value;
  if (Array.isArray(value)) return value.map((one, n) => cloneSettings(one, `${path}[${n}]`));
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null)
    throw new Error(`${path} is an object of ${value.constructor?.name ?? 'a class'}`);
  const clone: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(value)) {
    if (setting === undefined || setting === null || ABOUT_WHEN.includes(name)) continue;
    if (isDefault(name, setting, value)) continue;
    clone[name] = cloneSettings(setting, `${path}.${name}`);
  }
  return clone;
}

/** Functions that ioredis fills in for each cluster. */
function isDefault(name: string, setting: unknown, { useSRVRecords }: { useSRVRecords?: unknown }): boolean {
  if (name === 'dnsLookup') return setting === lookup;
  return name === 'resolveSrv' && (!useSRVRecords || (setting as { name?: string }).name === 'bound querySrv');
}
