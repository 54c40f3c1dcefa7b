import type { BackendError, FlightBackend, FlightRelease } from '../../backends/lock-backend.js';
import { unreleasedOwner } from '../ask/unused-owner.js';
import { type HeldLock, outcomeOf, type ReleaseOutcome } from '../hold/held-lock.js';
import { answeredOutcome, RecallableRelease } from '../hold/recallable-release.js';
import type { Services } from '../services.js';
import type { FlightTerms } from './flight-terms.js';

/** A run of this process. */
export interface Run {
  readonly held: HeldLock;
  readonly terms: FlightTerms;
  /** How its body ended; undefined if it has not ended yet. */
  outcome: { readonly value: string } | { readonly error: unknown } | undefined;
}

/** Releases the lock of a run, and stores its result if there is one that may be stored. */
export function storeResult(
  services: Services,
  flights: FlightBackend,
  { held, terms, outcome }: Run,
): Promise<ReleaseOutcome> {
  const { clock, events, backgroundReleases, commandTimeout, runtime } = services;
  // After the deadline, the lock counts as lost by this process's clock, and nothing is stored.
  const isHeld = clock.left(held.confirmed, held.validFor) > 0;
  if (outcome === undefined || !('value' in outcome) || !isHeld) return releaseWithoutResult(services, held);
  const { value } = outcome;
  const size = Buffer.byteLength(value);
  if (size > terms.maxSize) {
    const advice = 'callers of other processes run the body themselves. Return less, or raise maxSize';
    events.logger.warn(
      `The result of the single flight '${held.name}' has ${size} bytes, more than maxSize (${terms.maxSize}), and is not stored: ${advice}`,
    );
    return releaseWithoutResult(services, held);
  }
  const { key, owner, token } = held;
  const runnerWaitsUntil = runtime.monotonic() + commandTimeout;
  const flight: FlightRelease = { key, owner, token, keepFor: terms.keepFor, value, runnerWaitsUntil };
  return flights.release(flight).then(
    ({ released, refusal, resent }) => {
      backgroundReleases.followUp(held);
      if (refusal !== undefined)
        events.logger.warn(`The result of the single flight '${held.name}' could not be stored: ${refusal}`);
      return answeredOutcome(services, held, released !== 'gone', resent);
    },
    async (error: BackendError): Promise<ReleaseOutcome> => {
      const wasSent = error.outcome !== 'refused';
      const until = wasSent ? runnerWaitsUntil : runtime.monotonic();
      backgroundReleases.release({ ...unreleasedOwner(held), flight: { ...flight, runnerWaitsUntil: until } });
      if (wasSent) await settledOr(services, until, owner);
      return 'unreachable';
    },
  );
}

function releaseWithoutResult(services: Services, held: HeldLock): Promise<ReleaseOutcome> {
  return outcomeOf((listener) => new RecallableRelease(services, held).send(listener));
}

/**
 * Settles when the background release of this owner is settled, or at this moment of the monotonic clock. Until then, a
 * copy of the release that is executed counts as in time, so the runner must not have its result yet.
 */
function settledOr({ runtime, unsettledReleases }: Services, moment: number, owner: string): Promise<void> {
  return new Promise((resolve) => {
    const timer = runtime.timer(moment - runtime.monotonic(), resolve, 'keep-alive');
    const check = () => {
      if (unsettledReleases.onAnswer(owner, check)) return;
      timer.cancel();
      resolve();
    };
    check();
  });
}
