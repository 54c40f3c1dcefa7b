import type { Answer, Order, Tasks } from './tasks.js';

/** Runs the tasks of the parent process, and ends when that ends. */
export function serve(tasks: Partial<Tasks>): void {
  process.on('disconnect', () => process.exit());
  process.on('message', ({ id, task, args }: Order) => {
    const work = tasks[task] as (...args: unknown[]) => Promise<unknown>;
    work(...args).then(
      (result) => answer({ id, result }),
      (error) => answer({ id, error: String(error?.stack ?? error) }),
    );
  });
}

function answer(message: Answer): void {
  process.send!(message);
}
