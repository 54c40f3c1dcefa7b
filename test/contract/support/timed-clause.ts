/**
 * How long a clause may take besides waiting for time to pass. After that, a lease or a place that was to last for a
 * step may have ended before it, and the nodes of a quorum may have had no time to answer (half of the shortest lease).
 */
const STALL = 100;
const TRIES = 5;

type Body = (...args: never[]) => void | Promise<void>;

/** How long the present clause was to wait so far. */
let waited = 0;

/** Notes that the clause waits until this many milliseconds have passed on a real clock. */
export function waitsFor(time: number): void {
  waited += time;
}

/** Runs the body of a clause again, with other keys, if it failed while the machine stood still for a moment. */
export function timed<B extends Body>(body: B): (...args: Parameters<B>) => Promise<void> {
  return async (...args) => {
    for (let tries = 1; ; tries++) {
      waited = 0;
      const began = performance.now();
      try {
        return await body(...args);
      } catch (error) {
        if (tries === TRIES || performance.now() - began - waited < STALL) throw error;
      }
    }
  };
}

/** Like jest's `it`, for clauses in which steps have to be quicker than a lease or a place lasts. */
export const it = Object.assign((title: string, body: Body) => globalThis.it(title, timed(body)), {
  each:
    <T extends readonly unknown[]>(table: readonly (readonly [...T])[]) =>
    (title: string, body: (...args: T) => void | Promise<void>) =>
      globalThis.it.each(table as never)(title, timed(body as never) as never),
});
