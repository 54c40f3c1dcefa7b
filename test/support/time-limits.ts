// @ts-expect-error: it has no types.
import jestConfig from '../../jest.config.mjs';

/**
 * In milliseconds, longer than any test may take. Nobody lives to see a lease of this length end, so that it hides no
 * lost wake-up.
 */
export const NEVER: number = 10 * jestConfig.testTimeout;

/** A woken caller takes milliseconds; this is for a slow machine, and shorter than jest's limit. */
const WOKEN_WITHIN = 20_000;

/** Gives what a waiting caller gets. Rejects when nothing wakes it within 20 s. */
export async function woken<T>(waiting: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const overslept = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not woken within ${WOKEN_WITHIN} ms`)), WOKEN_WITHIN);
  });
  return Promise.race([waiting, overslept]).finally(() => clearTimeout(timer));
}
