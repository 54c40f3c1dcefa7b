import { LockBusyError } from '../errors.js';

/** Resolves to `null` if the lock stayed busy until the wait ended. All other errors are passed on. */
export async function nullWhenBusy<T>(acquisition: Promise<T>): Promise<T | null> {
  try {
    return await acquisition;
  } catch (error) {
    if (error instanceof LockBusyError) return null;
    throw error;
  }
}

/**
 * Resolves to false if the acquisition stayed busy until the wait ended, and to true otherwise. All other errors are
 * passed on.
 */
export async function falseWhenBusy(acquisition: Promise<unknown>): Promise<boolean> {
  return (await nullWhenBusy(acquisition.then(() => true))) ?? false;
}
