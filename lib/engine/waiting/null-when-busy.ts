import { LockBusyError } from '../errors.js';

/** Resolves to `null` when the acquisition stayed busy until the wait was over. All other errors are passed on. */
export async function nullWhenBusy<T>(acquisition: Promise<T>): Promise<T | null> {
  try {
    return await acquisition;
  } catch (error) {
    if (error instanceof LockBusyError) return null;
    throw error;
  }
}

/**
 * Resolves to false when the acquisition stayed busy until the wait was over, and to true otherwise. All other errors
 * are passed on.
 */
export async function falseWhenBusy(acquisition: Promise<unknown>): Promise<boolean> {
  return (await nullWhenBusy(acquisition.then(() => true))) ?? false;
}
