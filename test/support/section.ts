import { setTimeout as sleep } from 'node:timers/promises';

/** A critical section that notices when two are inside at once. */
export class Section {
  /** The most that were ever inside at once. */
  most = 0;
  /** Who went in, in this order. */
  readonly entries: string[] = [];
  private inside = 0;

  /** Goes in, stays for `time` milliseconds (0: for a few promises), and goes out. */
  pass = async (who = '', time = 0): Promise<void> => {
    this.entries.push(who);
    this.most = Math.max(this.most, ++this.inside);
    if (time > 0) await sleep(time);
    else for (let i = 0; i < 3; i++) await null;
    this.inside--;
  };
}

/** A promise that is settled from outside. */
export function latch(): { readonly promise: Promise<void>; readonly open: () => void } {
  let open!: () => void;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

/** Settles with the error that `promise` rejects with; rejects when it does not. */
export async function errorOf(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it did not reject');
}
