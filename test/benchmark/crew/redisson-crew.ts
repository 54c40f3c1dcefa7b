import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { guard } from '../../support/process-guard.js';
import type { LoopJob } from '../worker/lock-loop.js';
import type { Tasks } from '../worker/tasks.js';
import { type Crew, TASK_LIMIT } from './crew.js';

const PROJECT = fileURLToPath(new URL('../../../../test/interop/java/', import.meta.url));
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
  const args = ['-Xmx512m', '-Xss256k', '-cp', CLASS_PATH, 'interop.RedissonLoad', `redis://127.0.0.1:${port}`];
  const crew = new RedissonCrew(spawn('java', args, { cwd: PROJECT, stdio: ['pipe', 'pipe', 'inherit'] }));
  await crew.ready;
  return crew;
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
  const { callers, keys, key, body, duration } = first as LoopJob;
  return [callers, keys, key, body, duration];
}
