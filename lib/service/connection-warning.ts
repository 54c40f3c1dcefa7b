import type { LockEngine } from '../engine/lock-engine.js';

/** A service that has not reached its backend after so many milliseconds says so. */
const PATIENCE = 2_000;

/** Warns when the backend cannot be reached at the start: acquisitions wait for it, and the application may seem to hang. */
export function warnWhenNotConnected(engine: LockEngine): void {
  const { backend, runtime } = engine.settings;
  runtime.timer(PATIENCE, () => {
    const error = engine.isClosing ? undefined : backend.connectionError;
    if (error !== undefined)
      engine.warn(
        `${backend.description}: not connected after ${PATIENCE / 1_000} s (${error.message}); acquisitions wait for it, for outageTimeout at most. With connect: 'eager' the application does not start without it`,
      );
  });
}
