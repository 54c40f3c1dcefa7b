import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { guard } from '../../support/process-guard.js';
import type { LoopJob } from '../worker/lock-loop.js';
import type { ServicesJob } from '../worker/services.js';
import type { Tasks } from '../worker/tasks.js';
import { type Crew, TASK_LIMIT } from './crew.js';

const PROJECT = `${process.cwd()}/test/interop/java`;
const CLASS_PATH = 'target/classes:target/dependency/*';

/**
 * Compiles the Java side if there are a JDK and Maven. @returns why Redisson is left out; undefined if it takes part
 */
export function prepareRedisson(): string | undefined {
  const has = (program: string) => spawnSync(program, ['-version'], { stdio: 'ignore' }).status === 0;
  if (!has('javac') || !has('mvn')) return 'there is no JDK with Maven here';
  const goals = ['compile', 'dependency:copy-dependencies', '-DincludeScope=runtime'];
  const compile = (...options: string[]) =>
    spawnSync('mvn', ['-q', '-B', '-ntp', ...options, ...goals], { cwd: PROJECT, stdio: 'ignore' }).status === 0;
  return compile('-o') || compile() ? undefined : 'Maven could not build test/interop/java';
}

/** Redisson in a separate process, with a thread for each caller. */
export async function startRedissonCrew(port: number): Promise<Crew> {
  const crew = new RedissonCrew(startJava(port, 0));
  await crew.ready;
  return crew;
}

/** Redisson in separate processes. Each of them has a number of services, which are Redisson clients with one caller. */
export async function startRedissonServices(port: number, processes: number, services: number): Promise<Crew> {
  const crews = Array.from({ length: processes }, () => new RedissonCrew(startJava(port, services)));
  await Promise.all(crews.map(({ ready }) => ready));
  const each = (work: (crew: Crew) => void) => () => crews.forEach(work);
  return {
    run: async (task, ...args) => (await Promise.all(crews.map((crew) => crew.run(task, ...args)))).flat(),
    suspend: each((crew) => crew.suspend()),
    resume: each((crew) => crew.resume()),
    close: each((crew) => crew.close()),
  };
}

/** @param services the number of Redisson clients with one caller each; 0: one client for all callers */
function startJava(port: number, services: number): ChildProcess {
  const options = ['-Xmx512m', '-Xss256k', '-cp', CLASS_PATH];
  const args = ['interop.RedissonLoad', `redis://127.0.0.1:${port}`, String(services)];
  return spawn('java', [...options, ...args], { cwd: PROJECT, stdio: ['pipe', 'pipe', 'inherit'] });
}

class RedissonCrew implements Crew {
  readonly ready: Promise<unknown>;
  private awaited: { resolve(line: string): void; reject(error: Error): void } | undefined;

  constructor(private readonly child: ChildProcess) {
    guard(child);
    this.ready = this.line();
    createInterface({ input: child.stdout! }).on('line', (line) => this.awaited?.resolve(line));
    child.once('error', (error) => this.awaited?.reject(error));
    child.once('exit', (code) => this.awaited?.reject(new Error(`the JVM ended (${code})`)));
  }

  async run<T extends keyof Tasks>(task: T, ...args: Parameters<Tasks[T]>): Promise<Awaited<ReturnType<Tasks[T]>>[]> {
    const answer = this.line();
    this.child.stdin!.write(`${[task, ...wordsOf(args)].join(' ')}\n`);
    return [JSON.parse(await answer)];
  }

  suspend(): void {
    this.child.kill('SIGSTOP');
  }

  resume(): void {
    this.child.kill('SIGCONT');
  }

  close(): void {
    this.child.kill('SIGKILL');
  }

  private line(): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer of the JVM in ${TASK_LIMIT / 1000} s`)), TASK_LIMIT);
      this.awaited = {
        resolve(line) {
          clearTimeout(timer);
          resolve(line);
        },
        reject(error) {
          clearTimeout(timer);
          reject(error);
        },
      };
    });
  }
}

function wordsOf(args: readonly unknown[]): unknown[] {
  const [first] = args;
  if (typeof first !== 'object') return [...args];
  if ('waits' in (first as LoopJob | ServicesJob)) {
    const { key, body, waits, pause, startAt, countFrom, endAt } = first as ServicesJob;
    const [least, most] = waits === 'for ever' ? [-1, -1] : waits;
    return [key, body, least, most, pause, startAt, countFrom, endAt];
  }
  const { callers, keys, key, body, duration } = first as LoopJob;
  return [callers, keys, key, body, duration];
}
