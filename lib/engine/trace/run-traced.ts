import type { AcquireMessage } from '../events/channels.js';
import type { EventHub } from '../events/event-hub.js';
import { describeThrown } from '../events/lock-logger.js';

/**
 * Runs `work` inside the `run` that a subscriber has set on its message, if any. `work` runs exactly once, and its
 * result is returned even if `run` returns something else or throws. A subscriber that fails must not affect the lock
 * or the caller's code.
 *
 * @param channel the name of the channel in the warning
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
    logger.warn(`A subscriber of '${channel}' set a run() that ${why}; the work ran anyway`);
  try {
    // If the work rejects, this promise may reject too. The caller gets that error from once() below.
    Promise.resolve(run(once)).catch(() => {});
    if (outcome === undefined) warn('did not call its callback synchronously');
  } catch (error) {
    if (outcome === undefined || !hasThrown(outcome, error)) warn(`failed: ${describeThrown(error)}`);
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

/** Whether an error was thrown by the work, and not by the subscriber. */
function hasThrown(outcome: () => unknown, error: unknown): boolean {
  try {
    outcome();
    return false;
  } catch (thrown) {
    return thrown === error;
  }
}
