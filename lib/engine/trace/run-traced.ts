import type { EventHub } from '../events/events.js';
import type { AcquireMessage } from './channels.js';

/**
 * Runs `work` in what a subscriber has set as `run` of its message. The work runs once, and its outcome is what counts,
 * whatever `run` does: a subscriber that fails must not decide about a lock or a body.
 *
 * @param channel how the warning names it
 */
export function runTraced<T>(
  channel: string,
  { run }: Pick<AcquireMessage, 'run'>,
  work: () => T,
  { logger }: Pick<EventHub, 'logger'>,
): T {
  if (run === undefined) return work();
  let outcome: (() => T) | undefined;
  const once = (): T => {
    outcome ??= outcomeOf(work);
    return outcome();
  };
  const warn = (why: string) =>
    logger.warn(`a subscriber of '${channel}' has set a run that ${why}; the work has run all the same`);
  try {
    // Its promise may reject when the work rejects. That error is handled below.
    Promise.resolve(run(once)).catch(() => {});
    if (outcome === undefined) warn('did not call the work at once');
  } catch (error) {
    if (outcome === undefined || !hasThrown(outcome, error)) warn(`failed: ${inWords(error)}`);
  }
  return once();
}

function outcomeOf<T>(work: () => T): () => T {
  try {
    const result = work();
    return () => result;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** Whether an error is that of the work, and not of the subscriber. */
function hasThrown(outcome: () => unknown, error: unknown): boolean {
  try {
    outcome();
    return false;
  } catch (thrown) {
    return thrown === error;
  }
}

/** Anything may have been thrown. */
function inWords(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'with something that cannot be shown';
  }
}
