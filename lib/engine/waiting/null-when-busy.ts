import { LockBusyError } from '../errors.js';

/** What was acquired; `null` when it stayed busy until the wait was over. Every other error is passed on. */
export async function nullWhenBusy<T>(acquisition: Promise<T>): Promise<T | null> {
  try {
    return await acquisition;
  } catch (error) {
    if (error instanceof LockBusyError) return null;
    throw error;
  }
}

/** Whether it was acquired: false when it stayed busy until the wait was over. Every other error is passed on. */
export async function falseWhenBusy(acquisition: Promise<unknown>): Promise<boolean> {
  return (await nullWhenBusy(acquisition.then(() => true))) ?? false;
}
