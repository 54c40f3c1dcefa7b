import type { Redis } from 'ioredis';

/** The work that the server has done so far. */
export interface ServerLoad {
  /** CPU time of the whole process, in µs. */
  readonly cpu: number;
  /** Commands executed, including those that scripts call. */
  readonly commands: number;
}

/** The commands of the benchmark itself. */
const OURS = /^cmdstat_(info|command|config)/;

/** Reads the server's own statistics. */
export class ServerMeter {
  constructor(private readonly redis: Redis) {}

  async read(): Promise<ServerLoad> {
    const lines = `${await this.redis.info('cpu')}\n${await this.redis.info('commandstats')}`.split(/\r?\n/);
    let cpu = 0;
    let commands = 0;
    for (const line of lines) {
      const [name, value = ''] = line.split(':');
      if (name === 'used_cpu_sys' || name === 'used_cpu_user') cpu += Number(value) * 1e6;
      else if (name.startsWith('cmdstat_') && !OURS.test(name)) commands += Number(/calls=(\d+)/.exec(value)?.[1]);
    }
    return { cpu, commands };
  }

  /** The work that the server did during `work`. */
  async during<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly load: ServerLoad }> {
    const before = await this.read();
    const result = await work();
    const after = await this.read();
    return { result, load: { cpu: after.cpu - before.cpu, commands: after.commands - before.commands } };
  }
}
