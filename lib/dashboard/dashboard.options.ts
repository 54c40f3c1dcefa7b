import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { LockConfigurationError } from '../engine/errors.js';
import { checkOptionNames } from '../engine/terms/option-names.js';

/** Options of {@link RedisLockDashboardModule}. @publicApi */
export interface RedisLockDashboardOptions {
  /**
   * The path of the page, such as `'admin/locks'`, below the application's global prefix if it has one. Its data is
   * below `<path>/api`.
   */
  readonly path: string;
  /** Guards that protect the page and all of its data. At least one is needed unless `public` is true. */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
  /** Modules that export the dependencies of the guards. */
  readonly imports?: ModuleMetadata['imports'];
  /**
   * Lets in everybody who can reach the application. The page shows names of locks, hosts and methods. Default false.
   */
  readonly public?: boolean;
  /** Hides the form that releases a lock by force. Default true. */
  readonly readOnly?: boolean;
  /**
   * Returns the name of the user who asks for a forced release, for the log: `(request) => request.user.email`. If it
   * throws, nothing is released. Default: no name.
   */
  readonly userOf?: (request: never) => string | undefined | Promise<string | undefined>;
  /** The `name` of the RedisLockModule whose locks are shown. Default: the one without a name. */
  readonly name?: string;
  /**
   * The name of the environment that the page shows beside the address of Redis: `'production'`. Default: none.
   */
  readonly environment?: string;
  /**
   * The origin of the page, as a browser shows it: `'http://admin.example.com:8080'`. A release from a page of another
   * origin is refused. Default: the origin in the header `Host`. Needed only for a page without TLS behind a proxy that
   * changes this header.
   */
  readonly origin?: string;
}

const OPTIONS = ['path', 'guards', 'imports', 'public', 'readOnly', 'userOf', 'name', 'environment', 'origin'];
const LONGEST_ENVIRONMENT = 60;

/** @throws LockConfigurationError that names the option and the remedy */
export function checkDashboardOptions(options: RedisLockDashboardOptions): void {
  if (typeof options !== 'object' || options === null) refuse('the options must be an object with a path');
  checkOptionNames(options, OPTIONS, 'RedisLockDashboardModule.forRoot');
  const { path, guards, userOf, name, environment, origin } = options;
  if (typeof path !== 'string' || !/^\/?[\w.~-]+(\/[\w.~-]+)*\/?$/.test(path))
    refuse(`path is ${JSON.stringify(path)}; give the place of the page, such as 'admin/locks'`);
  for (const option of ['public', 'readOnly'] as const) {
    if (options[option] !== undefined && typeof options[option] !== 'boolean')
      refuse(`${option} must be true or false`);
  }
  if (guards !== undefined && !(Array.isArray(guards) && guards.every(isGuard)))
    refuse('guards must be a list of guards: classes or objects with canActivate()');
  if (userOf !== undefined && typeof userOf !== 'function') refuse('userOf must be a function of the request');
  if (name !== undefined && (typeof name !== 'string' || name === '')) refuse('name must be that of a RedisLockModule');
  if (environment !== undefined && !(typeof environment === 'string' && isLabel(environment)))
    refuse(`environment must be a text of 1 to ${LONGEST_ENVIRONMENT} characters, such as 'production'`);
  if (origin !== undefined && !(typeof origin === 'string' && isOrigin(origin)))
    refuse(
      `origin is ${JSON.stringify(origin)}; give scheme, host and port of the page, without a path: 'https://admin.example.com'`,
    );
  if ((guards?.length ?? 0) === 0 && options.public !== true)
    refuse(
      'the page shows names of locks, hosts and methods: give guards that decide who may see it, or public: true to let in everybody who can reach the application',
    );
}

function isLabel(text: string): boolean {
  return text.trim() !== '' && text.length <= LONGEST_ENVIRONMENT;
}

function isOrigin(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text.toLowerCase();
}

function isGuard(guard: unknown): boolean {
  if (typeof guard === 'function') return typeof guard.prototype?.canActivate === 'function';
  return typeof (guard as CanActivate | null)?.canActivate === 'function';
}

function refuse(why: string): never {
  throw new LockConfigurationError(`RedisLockDashboardModule.forRoot: ${why}`);
}
