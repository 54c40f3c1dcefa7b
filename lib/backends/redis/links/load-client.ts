import { createRequire } from 'node:module';
import { ConnectionError } from './connection-error.js';
import type { NodeRedisClient, NodeRedisOptions } from './node-redis/node-redis-client.js';

/** What this library uses of ioredis, or of its fork iovalkey. */
export type IoredisModule = Pick<typeof import('ioredis'), 'Redis' | 'Cluster' | 'Command'>;

/** What this library uses of node-redis. */
export interface NodeRedisModule {
  createClient(options: NodeRedisOptions): NodeRedisClient;
}

// The published file is a CommonJS module. A bundler follows a `require` with a literal name, and ignores a missing
// module if the `require` is inside a `try`. So each `require` has its own `try`.
declare const require: NodeJS.Require | undefined;
const fromHere = typeof require === 'function' ? undefined : createRequire(import.meta.url);

/** ioredis or iovalkey. Undefined if neither is installed. */
export function loadIoredis(): IoredisModule | undefined {
  try {
    return typeof require === 'function' ? require('ioredis') : fromHere?.('ioredis');
  } catch (error) {
    refuseBroken(error, 'ioredis');
  }
  try {
    return typeof require === 'function' ? require('iovalkey') : fromHere?.('iovalkey');
  } catch (error) {
    refuseBroken(error, 'iovalkey');
  }
  return undefined;
}

/**
 * node-redis. Undefined if it is not installed.
 *
 * @throws ConnectionError if the installed version is too old
 */
export function loadNodeRedis(): NodeRedisModule | undefined {
  const nodeRedis = findNodeRedis();
  if (nodeRedis !== undefined && !('createSentinel' in nodeRedis)) refuseOldNodeRedis();
  return nodeRedis;
}

/** An application may have node-redis 4 for other purposes, beside ioredis. */
export function refuseOldNodeRedis(): never {
  throw new ConnectionError(
    'The node-redis of the connection is too old: locks need redis 5 or 6. npm install redis@latest, or leave it and npm install ioredis, which a connection by URL then uses',
  );
}

function findNodeRedis(): NodeRedisModule | undefined {
  try {
    return typeof require === 'function' ? require('redis') : fromHere?.('redis');
  } catch (error) {
    refuseBroken(error, 'redis');
  }
  try {
    return typeof require === 'function' ? require('@redis/client') : fromHere?.('@redis/client');
  } catch (error) {
    refuseBroken(error, '@redis/client');
  }
  return undefined;
}

/** @throws ConnectionError if neither ioredis nor iovalkey is installed */
export function requireIoredis(): IoredisModule {
  return loadIoredis() ?? notInstalled('ioredis', 'npm install ioredis');
}

/** @throws ConnectionError if node-redis is not installed */
export function requireNodeRedis(): NodeRedisModule {
  return loadNodeRedis() ?? notInstalled('node-redis', 'npm install redis');
}

function notInstalled(client: string, command: string): never {
  throw new ConnectionError(`The connection is for ${client}, which is not installed: ${command}`);
}

/** If an installed client lacks one of its dependencies, the user gets that error. */
function refuseBroken(error: unknown, name: string): void {
  const isMissing = error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND';
  if (!isMissing || !error.message.includes(`'${name}'`)) throw error;
}
