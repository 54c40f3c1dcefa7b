import type { Runtime, Timer } from '../../backends/runtime.js';

/**
 * Waits for `work`, at most `time` milliseconds, and keeps the process alive meanwhile.
 *
 * @returns false if the time was over first
 * @throws what `work` rejects with in time
 */
export async function settlesWithin(
  time: number,
  work: Promise<unknown> | undefined,
  runtime: Pick<Runtime, 'timer'>,
): Promise<boolean> {
  let timer: Timer | undefined;
  const over = new Promise<false>((resolve) => {
    timer = runtime.timer(Math.max(0, time), () => resolve(false), 'keep-alive');
  });
  return Promise.race([Promise.resolve(work).then(() => true), over]).finally(() => timer?.cancel());
}
