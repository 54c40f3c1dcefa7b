import { LockConfigurationError } from '../engine/errors.js';
import { type Duration, MAX_LEASE_TIME, toMilliseconds, toWaitTime } from '../engine/terms/duration.js';
import {
  CHECKED_LATER,
  checkOptions,
  FUNCTION,
  type OptionTable,
  rule,
  TRUE_OR_FALSE,
  wholeNumber,
} from '../engine/terms/option-table.js';

/** What the function `scope` may return. */
export type Scope = string | number | bigint;

/** The request is that of Express or Fastify, with what the application has added to it. */
// biome-ignore lint/suspicious/noExplicitAny: only the application knows the type of its requests
export type AnyRequest = any;

/**
 * Options of {@link Idempotent}. Durations are milliseconds, or strings such as `'24h'`.
 *
 * @publicApi
 */
export interface IdempotentOptions<Request = AnyRequest> {
  /**
   * Whose request it is: `(request) => request.user.id`. Clients with different scopes may use the same key, and never
   * get each other's answers. It is called after guards. It returns a string that is not empty, a finite number or a
   * bigint, or a promise of one. With anything else, the response is 500, and the handler does not run.
   */
  readonly scope: (request: Request) => Scope | Promise<Scope>;
  /** How long an answer is kept after the handler has ended, up to 10 years. Default `'24h'`. */
  readonly keepFor?: Duration;
  /** The name of the request header with the key. Default `'Idempotency-Key'`. */
  readonly header?: string;
  /** How long a repetition waits for the first request, which is still running, before it gets 409. Default `'10s'`. */
  readonly waitTime?: Duration;
  /** Whether requests without a key get 400. With `false`, they run as if the handler had no decorator. Default true. */
  readonly required?: boolean;
  /**
   * Returns what tells the content of two requests apart, as a string that is not empty, or a promise of one:
   * `(request) => request.headers['content-digest']`. Needed for content that is not parsed before the handler runs,
   * such as uploads. Default: the content type, and the raw or parsed body.
   */
  readonly fingerprint?: (request: Request) => string | Promise<string>;
  /**
   * Whether an error is an answer that is kept and repeated. After other errors, a repetition runs the handler again.
   * `byDefault` is what it is without this option: true for errors whose status is below 500, except 408, 423, 425 and
   * 429, which ask the client to try again.
   */
  readonly keepErrors?: (error: unknown, byDefault: boolean) => boolean;
  /** Converts an answer to the text that is stored, for example by encrypting it. Needs `deserialize`. */
  readonly serialize?: (answer: string) => string;
  /** The opposite of `serialize`. If it throws, the response is 500, and the handler does not run. */
  readonly deserialize?: (text: string) => string;
  /**
   * The size of the largest answer that is kept, in bytes, after `serialize`. A larger one is sent to the first client
   * only, and repetitions get 409. Default 1 MiB.
   */
  readonly maxSize?: number;
  /** Name of the RedisLockModule to use. Default: the one without a name. */
  readonly service?: string;
}

/** Options with their defaults. */
export type Settings = Required<Omit<IdempotentOptions, 'service' | 'fingerprint' | 'keepErrors'>> &
  Pick<IdempotentOptions, 'service' | 'fingerprint' | 'keepErrors'>;

/** In bytes. */
const DEFAULT_MAX_SIZE = 1024 * 1024;
/** In bytes. Redis accepts values up to 512 MiB, and a fingerprint is stored beside the answer. */
const LARGEST_MAX_SIZE = 511 * 1024 * 1024;

const OPTIONS: OptionTable<IdempotentOptions> = {
  scope: FUNCTION,
  keepFor: CHECKED_LATER,
  header: rule('the name of a header', (value) => typeof value === 'string' && /^[\w!#$%&'*+.^`|~-]+$/.test(value)),
  waitTime: CHECKED_LATER,
  required: TRUE_OR_FALSE,
  fingerprint: FUNCTION,
  keepErrors: FUNCTION,
  serialize: FUNCTION,
  deserialize: FUNCTION,
  maxSize: wholeNumber(1, LARGEST_MAX_SIZE),
  service: rule('that of a RedisLockModule', (value) => typeof value === 'string' && value !== ''),
};

/** @throws LockConfigurationError that names the handler, the option and the remedy */
export function toSettings(options: IdempotentOptions, where: string): Settings {
  checkOptions(options, OPTIONS, where);
  const { scope, keepFor = '24h', waitTime = '10s', serialize, deserialize, ...others } = options;
  if (scope === undefined)
    throw new LockConfigurationError(
      `${where}: scope is missing; without it, clients that use the same key would get each other's answers. Give a function that says whose request it is: (request) => request.user.id`,
    );
  if ((serialize === undefined) !== (deserialize === undefined))
    throw new LockConfigurationError(`${where}: serialize and deserialize need each other; give both`);
  return {
    ...others,
    scope,
    keepFor: toMilliseconds(keepFor, `${where}: keepFor`, 1, MAX_LEASE_TIME),
    waitTime: toWaitTime(waitTime, `${where}: waitTime`),
    header: others.header ?? 'Idempotency-Key',
    required: others.required ?? true,
    serialize: serialize ?? String,
    deserialize: deserialize ?? String,
    maxSize: others.maxSize ?? DEFAULT_MAX_SIZE,
  };
}
