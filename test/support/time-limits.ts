// @ts-expect-error: this module has no types.
import jestConfig from '../../jest.config.mjs';

/**
 * A time in milliseconds that is longer than any test may take. A lease of this length does not end during a test, so
 * it cannot hide a lost wake-up.
 */
export const NEVER: number = 10 * jestConfig.testTimeout;

/** Enough for a slow machine, and shorter than jest's limit. A woken caller usually takes milliseconds. */
const WOKEN_WITHIN = 20_000;

/** Resolves with the result of a waiting caller. Rejects when nothing wakes it within 20 s. */
export async function woken<T>(waiting: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const overslept = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not woken within ${WOKEN_WITHIN} ms`)), WOKEN_WITHIN);
  });
  return Promise.race([waiting, overslept]).finally(() => clearTimeout(timer));
}
