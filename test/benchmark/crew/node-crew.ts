import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { guard } from '../../support/process-guard.js';
import type { Contestant } from '../contestants/contestant.js';
import type { Answer, Order, Tasks } from '../worker/tasks.js';
import { type Crew, TASK_LIMIT } from './crew.js';

const WORKER = new URL('../worker/worker.js', import.meta.url);

/** Starts `size` processes, each with `connections` to the server at `port`. */
export async function startNodeCrew(
  contestant: Contestant,
  port: number,
  size: number,
  connections: number,
  worker = WORKER,
): Promise<Crew> {
  const workers = Array.from({ length: size }, () => new Worker(worker));
  const crew = new NodeCrew(workers);
  try {
    await crew.run('open', contestant.name, port, connections);
  } catch (error) {
    crew.close();
    throw error;
  }
  return crew;
}

class NodeCrew implements Crew {
  constructor(private readonly workers: readonly Worker[]) {}

  run<T extends keyof Tasks>(task: T, ...args: Parameters<Tasks[T]>): Promise<Awaited<ReturnType<Tasks[T]>>[]> {
    return Promise.all(this.workers.map((worker) => worker.run(task, args))) as never;
  }

  suspend(): void {
    for (const worker of this.workers) worker.kill('SIGSTOP');
  }

  resume(): void {
    for (const worker of this.workers) worker.kill('SIGCONT');
  }

  close(): void {
    for (const worker of this.workers) worker.kill('SIGKILL');
  }
}

class Worker {
  private readonly child: ChildProcess;
  private readonly awaited = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  private orders = 0;

  constructor(worker: URL) {
    this.child = fork(fileURLToPath(worker), {
      execArgv: [...process.execArgv, '--expose-gc'],
      serialization: 'advanced',
    });
    guard(this.child);
    this.child.on('message', ({ id, result, error }: Answer) => {
      const awaited = this.awaited.get(id);
      this.awaited.delete(id);
      if (error === undefined) awaited?.resolve(result);
      else awaited?.reject(new Error(error));
    });
    this.child.once('exit', (code) => {
      for (const { reject } of this.awaited.values()) reject(new Error(`the process ended (${code})`));
    });
  }

  run(task: keyof Tasks, args: readonly unknown[]): Promise<unknown> {
    const id = ++this.orders;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${task} took over ${TASK_LIMIT / 1000} s`)), TASK_LIMIT);
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          clearTimeout(timer);
          settle(value);
        };
      this.awaited.set(id, { resolve: settled(resolve), reject: settled(reject) });
      this.child.send({ id, task, args } satisfies Order);
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}
