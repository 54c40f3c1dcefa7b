import { createRequire } from 'node:module';
import { type OptionalPackage, tooOld } from '../../installed-version.js';
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

/** ioredis or iovalkey. Undefined if neither is installed, or what is installed is too old. */
export function loadIoredis(): IoredisModule | undefined {
  if (tooOld('ioredis') === undefined) {
    try {
      const ioredis = typeof require === 'function' ? require('ioredis') : fromHere?.('ioredis');
      if ('Redis' in ioredis) return ioredis;
    } catch (error) {
      refuseBroken(error, 'ioredis');
    }
  }
  if (tooOld('iovalkey') === undefined) {
    try {
      return typeof require === 'function' ? require('iovalkey') : fromHere?.('iovalkey');
    } catch (error) {
      refuseBroken(error, 'iovalkey');
    }
  }
  return undefined;
}

/** node-redis. Undefined if it is not installed, or too old. */
export function loadNodeRedis(): NodeRedisModule | undefined {
  if (tooOld('redis') === undefined) {
    try {
      const redis = typeof require === 'function' ? require('redis') : fromHere?.('redis');
      if ('createSentinel' in redis) return redis;
    } catch (error) {
      refuseBroken(error, 'redis');
    }
  }
  if (tooOld('@redis/client') === undefined) {
    try {
      const client = typeof require === 'function' ? require('@redis/client') : fromHere?.('@redis/client');
      if ('createSentinel' in client) return client;
    } catch (error) {
      refuseBroken(error, '@redis/client');
    }
  }
  return undefined;
}

/** @throws ConnectionError if there is no ioredis or iovalkey that locks can use */
export function requireIoredis(): IoredisModule {
  return loadIoredis() ?? refuse('The connection is for ioredis', ['ioredis', 'iovalkey'], 'npm install ioredis');
}

/** @throws ConnectionError if there is no node-redis that locks can use */
export function requireNodeRedis(): NodeRedisModule {
  return loadNodeRedis() ?? refuse('The connection is for node-redis', ['redis', '@redis/client'], 'npm install redis');
}

/** @throws ConnectionError always, because no client is installed that locks can use */
export function refuseUrl(): never {
  return refuse(
    'The connection is a URL',
    ['ioredis', 'iovalkey', 'redis', '@redis/client'],
    'npm install ioredis, or npm install redis',
  );
}

/** @throws ConnectionError always, because the client that the user gave is too old */
export function refuseOldClient(name: 'ioredis' | 'redis', problem = tooOld(name)): never {
  throw new ConnectionError(
    `The client of the connection is of an old version: ${problem ?? `locks need a newer ${name}`}. ${updateOrKeep(name)}`,
  );
}

function refuse(connection: string, names: readonly OptionalPackage[], install: string): never {
  const old = names.filter((name) => tooOld(name) !== undefined);
  if (old.length === 0) throw new ConnectionError(`${connection}, and no Redis client is installed for it: ${install}`);
  // @redis/client is a part of redis.
  const named = old.includes('redis') ? old.filter((name) => name !== '@redis/client') : old;
  const problems = named.map((name) => tooOld(name)).join('; ');
  throw new ConnectionError(`${connection}, and ${problems}. ${updateOrKeep(named[0])}`);
}

/** An application may need the old version for something else. */
function updateOrKeep(name: OptionalPackage): string {
  const other = name === 'ioredis' || name === 'iovalkey' ? 'redis' : 'ioredis';
  return `Update it: npm install ${name}@latest. Or keep it, npm install ${other}@latest, and give a URL as the connection`;
}

/** If an installed client lacks one of its dependencies, the user gets that error. */
function refuseBroken(error: unknown, name: string): void {
  const isMissing = error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND';
  if (!isMissing || !error.message.includes(`'${name}'`)) throw error;
}
