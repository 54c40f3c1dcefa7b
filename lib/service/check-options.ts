import type { LockBackend } from '../backends/lock-backend.js';
import { QUORUM_CONFIRMS, REPLICAS_CONFIRM } from '../backends/reasons-to-confirm.js';
import { LockConfigurationError } from '../engine/errors.js';
import { assertMayNotConfirm } from '../engine/terms/assert-supported.js';
import { prefixProblem } from '../engine/terms/lock-name.js';
import { ON_LOST, RELEASE } from '../engine/terms/lock-options.js';
import {
  CHECKED_LATER,
  checkOptions,
  type OptionTable,
  oneOf,
  type RefusedOptions,
  rule,
  TRUE_OR_FALSE,
  wholeNumber,
} from '../engine/terms/option-table.js';
import type { RedisLockOptions } from './redis-lock-options.js';

/** An application's name, which is printed in logs and terminals. */
const NAME = /^\P{Cc}{1,100}$/u;

const OPTIONS: OptionTable<RedisLockOptions> = {
  connection: CHECKED_LATER,
  backend: rule(
    "'memory' or a LockBackend",
    (value) => value === 'memory' || typeof (value as LockBackend | null)?.acquire === 'function',
  ),
  quorum: CHECKED_LATER,
  name: CHECKED_LATER,
  applicationName: rule(
    'a string of 1 to 100 characters without control characters',
    (value) => typeof value === 'string' && NAME.test(value),
  ),
  isGlobal: TRUE_OR_FALSE,
  keyPrefix: CHECKED_LATER,
  watchdogTimeout: CHECKED_LATER,
  waiterTimeout: CHECKED_LATER,
  waitTime: CHECKED_LATER,
  outageTimeout: CHECKED_LATER,
  shutdownTimeout: CHECKED_LATER,
  onLost: ON_LOST,
  release: RELEASE,
  minReplicas: wholeNumber(0),
  commandTimeout: CHECKED_LATER,
  keepWhileBlocked: CHECKED_LATER,
  shardedPubSub: oneOf('auto', 'on', 'off'),
  connect: oneOf('lazy', 'eager'),
  logger: rule('an object with the methods warn and error', (value) =>
    ['warn', 'error'].every((method) => typeof (value as Record<string, unknown> | null)?.[method] === 'function'),
  ),
};

/** Options of versions before the first release. */
const FORMER: RefusedOptions = {
  fairWaitTimeout: 'write waiterTimeout',
  replicaTimeout: 'commandTimeout says how long the replicas have, too',
  reentry: 'write it in the calls whose bodies must not share the locks around them',
  allowSuspiciousNames:
    "check the values that names are made of; a word such as 'null' beside another sign than ':' is accepted",
};

/**
 * Checks all options except durations.
 *
 * @throws LockConfigurationError naming the option that is missing or wrong
 */
export function checkServiceOptions(options: RedisLockOptions): void {
  if (typeof options !== 'object' || options === null) refuse('the options are missing');
  checkOptions(options, OPTIONS, 'RedisLockModule', FORMER);
  checkPlace(options);
  const { quorum, keyPrefix } = options;
  if (quorum !== undefined) checkQuorum(quorum);
  const problem = keyPrefix === undefined ? undefined : prefixProblem(keyPrefix);
  if (problem !== undefined) refuse(`keyPrefix ${problem}`);
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

function checkQuorum(quorum: unknown): void {
  if (Array.isArray(quorum) && quorum.length >= 3 && quorum.length % 2 === 1) return;
  const found = Array.isArray(quorum) ? `, but there are ${quorum.length}` : '';
  refuse(
    `quorum needs an odd number of connections, three or more, to masters that are not replicas of each other${found}`,
  );
}

function refuse(why: string): never {
  throw new LockConfigurationError(`RedisLockModule: ${why}`);
}
