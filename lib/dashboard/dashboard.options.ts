import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { LockConfigurationError } from '../engine/errors.js';
import { CHECKED_LATER, checkOptions, type OptionTable, rule, TRUE_OR_FALSE } from '../engine/terms/option-table.js';

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
   * Lets in everybody who can reach the application. The page shows names of locks, hosts and methods. It is served
   * only under the hosts of `origin`; without that option, under IP addresses and localhost. Default false.
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
   * The origin of the page as a browser shows it, or a list of them: `'https://admin.example.com'`,
   * `'http://10.0.0.7:8080'`. Requests with another `Host` get 421, and a release from a page of another origin is
   * refused. Set it if a guard lets in a network instead of a user: without it, a page on the Internet can read the
   * dashboard through the browser of somebody in that network (DNS rebinding). Default: any host if there are guards,
   * otherwise only IP addresses and localhost.
   */
  readonly origin?: string | readonly string[];
}

const LONGEST_ENVIRONMENT = 60;

const OPTIONS: OptionTable<RedisLockDashboardOptions> = {
  path: rule(
    "the place of the page, such as 'admin/locks'",
    (value) => typeof value === 'string' && /^\/?[\w.~-]+(\/[\w.~-]+)*\/?$/.test(value),
  ),
  guards: rule(
    'a list of guards: classes or objects with canActivate()',
    (value) => Array.isArray(value) && value.every(isGuard),
  ),
  imports: CHECKED_LATER,
  public: TRUE_OR_FALSE,
  readOnly: TRUE_OR_FALSE,
  userOf: rule('a function of the request', (value) => typeof value === 'function'),
  name: rule('that of a RedisLockModule', (value) => typeof value === 'string' && value !== ''),
  environment: rule(
    `a text of 1 to ${LONGEST_ENVIRONMENT} characters, such as 'production'`,
    (value) => typeof value === 'string' && isLabel(value),
  ),
  origin: CHECKED_LATER,
};

/** @throws LockConfigurationError that names the option and the remedy */
export function checkDashboardOptions(options: RedisLockDashboardOptions): void {
  if (typeof options !== 'object' || options === null) refuse('the options must be an object with a path');
  checkOptions(options, OPTIONS, 'RedisLockDashboardModule.forRoot');
  const { path, guards, origin } = options;
  if (path === undefined) refuse("path is missing; give the place of the page, such as 'admin/locks'");
  const wrong = originsOf(origin).find((own) => !isOrigin(own));
  if (wrong !== undefined)
    refuse(
      `origin is ${JSON.stringify(wrong)}; give scheme, host and port of the page, without a path: 'https://admin.example.com'`,
    );
  if (Array.isArray(origin) && origin.length === 0) refuse('origin is an empty list; give the origins of the page');
  if ((guards?.length ?? 0) === 0 && options.public !== true)
    refuse(
      'the page shows names of locks, hosts and methods: give guards that decide who may see it, or public: true to let in everybody who can reach the application',
    );
}

function isLabel(text: string): boolean {
  return text.trim() !== '' && text.length <= LONGEST_ENVIRONMENT;
}

/** The option `origin` as a list, which is empty if it is not set. */
export function originsOf(origin: RedisLockDashboardOptions['origin']): readonly string[] {
  return origin === undefined ? [] : ([origin].flat() as string[]);
}

function isOrigin(text: unknown): boolean {
  return (
    typeof text === 'string' &&
    /^https?:\/\//.test(text) &&
    URL.canParse(text) &&
    new URL(text).origin === text.toLowerCase()
  );
}

function isGuard(guard: unknown): boolean {
  if (typeof guard === 'function') return typeof guard.prototype?.canActivate === 'function';
  return typeof (guard as CanActivate | null)?.canActivate === 'function';
}

function refuse(why: string): never {
  throw new LockConfigurationError(`RedisLockDashboardModule.forRoot: ${why}`);
}
