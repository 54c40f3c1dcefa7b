import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits until `condition` is true, and checks it every few milliseconds. Rejects with the condition's text when it is
 * not true within `timeout` ms.
 */
export async function until(condition: () => unknown, timeout = 45_000): Promise<void> {
  const deadline = performance.now() + timeout;
  while (!(await condition())) {
    if (performance.now() > deadline) {
      throw new Error(`not so within ${timeout} ms: ${condition}`);
    }
    await sleep(5);
  }
}
