import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** An answer of the peer. */
export interface PeerAnswer {
  readonly result: string;
  /** When the command ended, by the wall clock of this machine, in ms. */
  readonly at: number;
}

const folder = fileURLToPath(new URL('./java', import.meta.url));

/** A Java process with the real Redisson (java/src), which executes commands. */
export class RedissonPeer {
  private readonly awaited = new Map<
    string,
    { resolve: (answer: PeerAnswer) => void; reject: (error: Error) => void }
  >();
  private commands = 0;

  private constructor(private readonly child: ChildProcess) {
    const lines = createInterface({ input: child.stdout! });
    lines.on('line', (line) => this.hear(line));
    child.once('exit', () => {
      for (const { reject } of this.awaited.values()) reject(new Error('the Redisson process has ended'));
    });
  }

  static async start(port: number): Promise<RedissonPeer> {
    const classPath = 'target/classes:target/dependency/*';
    const child = spawn('java', ['-Xmx256m', '-cp', classPath, 'interop.RedissonPeer', `redis://127.0.0.1:${port}`], {
      cwd: folder,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const peer = new RedissonPeer(child);
    await new Promise<void>((resolve, reject) => {
      peer.awaited.set('ready', { resolve: () => resolve(), reject });
    });
    return peer;
  }

  /** Lets a thread of the peer run one command. To Redisson, each thread is a separate owner. */
  async run(thread: string, command: string, ...words: (string | number)[]): Promise<PeerAnswer> {
    const id = String(++this.commands);
    const answer = new Promise<PeerAnswer>((resolve, reject) => this.awaited.set(id, { resolve, reject }));
    this.child.stdin!.write(`${[id, thread, command, ...words].join(' ')}\n`);
    return answer;
  }

  async stop(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.child.once('exit', () => resolve()));
    this.child.stdin!.end();
    await ended;
  }

  /** Kills the process. */
  kill(): void {
    this.child.kill('SIGKILL');
  }

  private hear(line: string): void {
    const [id, outcome, result = '', at = '0'] = line.split(' ');
    const awaited = this.awaited.get(id);
    if (awaited === undefined) return;
    this.awaited.delete(id);
    if (outcome === 'error') awaited.reject(new Error(`Redisson: ${result}`));
    else awaited.resolve({ result, at: Number(at) });
  }
}
