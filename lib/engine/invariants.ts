const SWITCH = Symbol.for('nestjs-redis-lock.checks');

/**
 * Whether the engine checks its own state while it runs. Only the tests of this library switch it on, before they load
 * the library. Elsewhere it costs nothing, because it is a constant.
 */
export const CHECKED = (globalThis as { [SWITCH]?: true })[SWITCH] === true;

/** @throws Error for a mistake in this library */
export function invariant(holds: boolean, what: string): void {
  if (!holds) throw new Error(`The lock engine is in a state that must not exist: ${what}`);
}
