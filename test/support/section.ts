import { setTimeout as sleep } from 'node:timers/promises';

/** A critical section that detects two callers inside at once. */
export class Section {
  /** The maximum number of callers that were inside at once. */
  most = 0;
  /** The callers that entered, in order. */
  readonly entries: string[] = [];
  private inside = 0;

  /** Enters, stays for `time` milliseconds (0: for a few promises), and leaves. */
  pass = async (who = '', time = 0): Promise<void> => {
    this.entries.push(who);
    this.most = Math.max(this.most, ++this.inside);
    if (time > 0) await sleep(time);
    else for (let i = 0; i < 3; i++) await null;
    this.inside--;
  };
}

/** A promise that the test settles. */
export function latch(): { readonly promise: Promise<void>; readonly open: () => void } {
  let open!: () => void;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

/** Resolves with the error with which `promise` rejects. Rejects if `promise` does not. */
export async function errorOf(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it did not reject');
}
