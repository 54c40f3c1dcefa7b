import { LockBusyError } from '../errors.js';
import { type AcquireMessage, acquireChannel, holdChannel } from '../events/channels.js';
import type { AcquireOutcome } from '../events/lock-events.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { Services } from '../services.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { runTraced } from './run-traced.js';
import { tokenOf, traceHold } from './trace-hold.js';

/** The services that are needed here. */
type Needs = Pick<Services, 'events' | 'runtime'>;

/** Whether anybody listens to acquisitions. */
export function isTraced({ events }: Needs): boolean {
  return events.failures || acquireChannel.hasSubscribers || holdChannel.hasSubscribers;
}

/** What the caller of a single flight gets instead of a lease: the result of another caller's run. */
interface Shared {
  readonly value: string;
  /** The owner of the run. */
  readonly run: string;
}

/** Runs an acquisition, and publishes its outcome. */
export function traceAcquisition<T extends LockLease | Shared>(
  services: Needs,
  names: readonly string[],
  terms: AcquisitionTerms,
  acquire: () => Promise<T>,
): Promise<T> {
  const { runtime } = services;
  const { type, group, method } = terms;
  const started = runtime.monotonic();
  const message: AcquireMessage = {
    name: names.join(', '),
    names,
    type,
    group,
    method,
    run: undefined,
    outcome: undefined,
    waited: undefined,
    reentry: undefined,
    shared: undefined,
    handedOff: undefined,
    superseded: undefined,
    standsBy: terms.standsBy === true,
    owner: undefined,
    owners: undefined,
    fencingToken: undefined,
    holderClient: undefined,
  };
  const acquisition = async () => {
    try {
      const lease = await runTraced('nestjs-redis-lock:acquire', message, acquire, services.events);
      message.waited = runtime.monotonic() - started;
      message.shared = 'value' in lease;
      if ('value' in lease) {
        message.outcome = 'shared';
        message.owner = lease.run;
        return lease;
      }
      message.outcome = 'acquired';
      message.reentry = lease.locks.every(({ shares }) => shares[0] !== lease);
      message.handedOff = !message.reentry && lease.locks.some(({ handedOff }) => handedOff);
      message.superseded = lease.superseded;
      message.owner = lease.owner;
      message.owners = lease.owners;
      message.fencingToken = tokenOf(lease);
      traceHold(services, lease, message);
      return lease;
    } catch (error) {
      message.waited = runtime.monotonic() - started;
      message.holderClient = error instanceof LockBusyError ? error.holderClient : undefined;
      announceFailure(services, message, outcomeOf(error as Error, terms), error as Error);
      throw error;
    }
  };
  return acquireChannel.tracePromise(acquisition, message) as Promise<T>;
}

const OUTCOMES: Readonly<Record<string, Exclude<AcquireOutcome, 'acquired' | 'shared'>>> = {
  LockBusyError: 'busy',
  LockSupersededError: 'superseded',
  LockAbortedError: 'aborted',
  LockUnavailableError: 'unavailable',
  LockDeadlockError: 'deadlock',
  LockLostError: 'lost',
};

function outcomeOf({ name }: Error, { skips }: AcquisitionTerms): Exclude<AcquireOutcome, 'acquired' | 'shared'> {
  const outcome = OUTCOMES[name] ?? 'refused';
  return outcome === 'busy' && skips ? 'skipped' : outcome;
}

function announceFailure(
  { events }: Needs,
  message: AcquireMessage,
  outcome: Exclude<AcquireOutcome, 'acquired' | 'shared'>,
  error: Error,
): void {
  message.outcome = outcome;
  if (!events.failures) return;
  const { name, names, type, group, method, waited = 0 } = message;
  events.emit('failed', { name, names, type, group, method, outcome, waited, error });
}
