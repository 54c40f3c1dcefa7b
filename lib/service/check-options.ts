import type { LockBackend } from '../backends/lock-backend.js';
import { QUORUM_CONFIRMS, REPLICAS_CONFIRM } from '../backends/reasons-to-confirm.js';
import { LockConfigurationError } from '../engine/errors.js';
import { assertMayNotConfirm } from '../engine/terms/assert-supported.js';
import { prefixProblem } from '../engine/terms/lock-name.js';
import { RELEASE_MODES } from '../engine/terms/lock-options.js';
import { checkOptionNames } from '../engine/terms/option-names.js';
import type { RedisLockOptions } from './redis-lock-options.js';

const OPTION_NAMES: readonly string[] = [
  'connection',
  'backend',
  'quorum',
  'name',
  'applicationName',
  'isGlobal',
  'keyPrefix',
  'allowSuspiciousNames',
  'watchdogTimeout',
  'fairWaitTimeout',
  'waitTime',
  'outageTimeout',
  'shutdownTimeout',
  'onLost',
  'release',
  'reentry',
  'minReplicas',
  'replicaTimeout',
  'commandTimeout',
  'shardedPubSub',
  'connect',
  'logger',
] satisfies (keyof RedisLockOptions)[];

/** An application's name, which is printed in logs and terminals. */
const NAME = /^\P{Cc}{1,100}$/u;

/**
 * Checks all options except durations.
 *
 * @throws LockConfigurationError naming the option that is missing or wrong
 */
export function checkOptions(options: RedisLockOptions): void {
  if (typeof options !== 'object' || options === null) refuse('the options are missing');
  checkOptionNames(options, OPTION_NAMES, 'RedisLockModule');
  checkPlace(options);
  checkValues(options);
  if (options.release === 'background')
    assertMayNotConfirm(reasonToConfirm(options), options.onLost, 'RedisLockModule');
}

/** Why these options require confirmed releases; undefined if they do not. */
function reasonToConfirm({ backend, quorum, minReplicas = 0 }: RedisLockOptions): string | undefined {
  if (quorum !== undefined) return QUORUM_CONFIRMS;
  if (minReplicas > 0) return REPLICAS_CONFIRM;
  return typeof backend === 'object' ? backend.confirmsReleases : undefined;
}

/** Exactly one option determines where the locks are kept. */
function checkPlace(options: RedisLockOptions): void {
  const present = (['connection', 'backend', 'quorum'] as const).filter((option) => option in options);
  const given = present.filter((option) => options[option] !== undefined);
  if (given.length === 1) return;
  const examples = "such as { connection: 'redis://localhost:6379' }, or { backend: 'memory' } for tests";
  if (given.length === 0 && present.length > 0) {
    const unset = present.map((option) => `${option} is undefined`).join(' and ');
    refuse(
      `${unset}. If the value comes from an environment variable or a setting, is that set? Give one of connection, backend and quorum, ${examples}`,
    );
  }
  const found = given.length === 0 ? 'none is given' : `${given.join(' and ')} are given`;
  refuse(`give one of connection, backend and quorum (${found}), ${examples}`);
}

function checkValues({
  applicationName,
  allowSuspiciousNames,
  isGlobal,
  logger,
  connect,
  backend,
  quorum,
  keyPrefix,
  onLost,
  release,
  reentry,
  minReplicas,
  shardedPubSub,
}: RedisLockOptions): void {
  if (backend !== undefined && backend !== 'memory' && typeof (backend as LockBackend | null)?.acquire !== 'function')
    refuse("backend must be 'memory' or a LockBackend");
  if (quorum !== undefined && !(Array.isArray(quorum) && quorum.length >= 3 && quorum.length % 2 === 1)) {
    const found = Array.isArray(quorum) ? `, but there are ${quorum.length}` : '';
    refuse(
      `quorum needs an odd number of connections, three or more, to masters that are not replicas of each other${found}`,
    );
  }
  if (applicationName !== undefined && !(typeof applicationName === 'string' && NAME.test(applicationName)))
    refuse('applicationName must be a string of 1 to 100 characters without control characters');
  if (connect !== undefined && connect !== 'lazy' && connect !== 'eager')
    refuse(`connect is '${connect}'; it must be 'lazy' or 'eager'`);
  for (const [option, value] of Object.entries({ isGlobal, allowSuspiciousNames, reentry })) {
    if (value !== undefined && typeof value !== 'boolean')
      refuse(`${option} is ${typeof value === 'string' ? `'${value}'` : String(value)}; it must be true or false`);
  }
  if (logger !== undefined && ![logger?.warn, logger?.error].every((method) => typeof method === 'function'))
    refuse('logger must have the methods warn and error');
  const prefix = keyPrefix === undefined ? undefined : prefixProblem(keyPrefix);
  if (prefix !== undefined) refuse(`keyPrefix ${prefix}`);
  if (onLost !== undefined && onLost !== 'throw' && onLost !== 'warn')
    refuse(`onLost is '${onLost}'; it must be 'throw' or 'warn'`);
  if (release !== undefined && !RELEASE_MODES.includes(release))
    refuse(`release is '${release}'; it must be 'confirmed' or 'background'`);
  if (minReplicas !== undefined && !(Number.isInteger(minReplicas) && minReplicas >= 0))
    refuse(`minReplicas is ${minReplicas}; it must be a whole number`);
  if (shardedPubSub !== undefined && !['auto', 'on', 'off'].includes(shardedPubSub))
    refuse(`shardedPubSub is '${shardedPubSub}'; it must be 'auto', 'on' or 'off'`);
}

function refuse(why: string): never {
  throw new LockConfigurationError(`RedisLockModule: ${why}`);
}
