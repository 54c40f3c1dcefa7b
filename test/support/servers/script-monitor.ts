import type { Redis } from 'ioredis';
import { type ScriptName, scripts } from '../../../lib/backends/redis/scripts.js';
import type { RedisServer } from './redis-server.js';

/** One run of a script of this library, as shown by MONITOR. */
export interface ScriptRun {
  readonly script: ScriptName;
  /** Its KEYS. */
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** When it ran, in milliseconds on the server's clock. */
  readonly time: number;
  /** The commands that it called; complete when the next script runs. */
  readonly commands: readonly (readonly string[])[];
}

/** A key that a script used although it is not in KEYS. */
export interface UndeclaredKey {
  readonly script: ScriptName;
  readonly key: string;
}

const NAMES = Object.keys(scripts) as ScriptName[];
const BY_SHA1 = new Map(NAMES.map((name) => [scripts[name].sha1, name]));
/**
 * A script that the server does not know yet is sent as its source. MONITOR escapes its line ends and its characters
 * that are not ASCII.
 */
const BY_TEXT = new Map(NAMES.map((name) => [scripts[name].source.replace(/[^\x20-\x7e]/g, ''), name]));

/**
 * Records every script of this library that a server runs, with its keys and the commands that it called.
 *
 *     const monitor = await ScriptMonitor.start(server);
 *     …
 *     await monitor.undeclaredKeys();
 *     monitor.stop();
 */
export class ScriptMonitor {
  readonly runs: ScriptRun[] = [];
  /** Called with each of them, in the order in which the server runs them. */
  onRun: (run: ScriptRun) => void = () => {};
  private readonly positions = new Map<string, readonly number[]>();

  static async start(server: RedisServer): Promise<ScriptMonitor> {
    // Not client.monitor(), which fails if the first line arrives together with the reply to MONITOR. This one connects
    // again then.
    const monitor = new ScriptMonitor(server.client(), server.client({ monitor: true }));
    await monitor.monitoringAgain();
    return monitor;
  }

  private constructor(
    private readonly client: Redis,
    private readonly monitor: Redis,
  ) {
    monitor.on('error', () => {}); // it reconnects when the server is back
    let commands: string[][] = [];
    monitor.on('monitor', (time: string, args: string[], source: string) => {
      if (source === 'lua') {
        commands.push(args);
        return;
      }
      commands = [];
      const script = scriptOf(args);
      if (script === undefined) return;
      const [, , count, ...rest] = args;
      const keys = rest.slice(0, Number(count));
      const run = { script, keys, args: rest.slice(Number(count)), time: Number(time) * 1_000, commands };
      this.runs.push(run);
      this.onRun(run);
    });
  }

  async undeclaredKeys(): Promise<readonly UndeclaredKey[]> {
    await this.caughtUp();
    const found: UndeclaredKey[] = [];
    for (const { script, keys, commands } of this.runs) {
      for (const command of commands) {
        for (const position of await this.keyPositions(command)) {
          const key = command[position];
          if (!keys.includes(key)) found.push({ script, key });
        }
      }
    }
    return found;
  }

  /**
   * Resolves when a server that is down is back and monitored. Before that, every line of the old server is recorded.
   */
  monitoringAgain(): Promise<void> {
    // Not once() of node:events, which rejects when an attempt to connect fails.
    return new Promise((resolve) => this.monitor.once('monitoring', () => resolve()));
  }

  stop(): void {
    this.monitor.disconnect();
    this.client.disconnect();
  }

  /** MONITOR lags behind the commands that it shows. */
  async caughtUp(): Promise<void> {
    const seen = new Promise<void>((resolve) => {
      this.monitor.on('monitor', (_time: string, [command]: string[]) => {
        if (/^echo$/i.test(command)) resolve();
      });
    });
    await this.client.echo('caught up?');
    await seen;
  }

  /** The positions of the keys of a command. Asks the server, with names instead of the arguments. */
  private async keyPositions([name, ...args]: readonly string[]): Promise<readonly number[]> {
    if (args.length === 0) return [];
    const form = `${name.toLowerCase()} ${args.length}`;
    let positions = this.positions.get(form);
    if (positions === undefined) {
      const names = args.map((_, index) => String(index + 1));
      const keys = await this.client.call('COMMAND', 'GETKEYS', name, ...names).catch((error: Error) => {
        // PUBSUB has subcommands, whose names are not among these arguments.
        if (/no key arguments|invalid command/i.test(error.message)) return [];
        throw error;
      });
      positions = (keys as string[]).map(Number);
      this.positions.set(form, positions);
    }
    return positions;
  }
}

function scriptOf([command, script]: readonly string[]): ScriptName | undefined {
  if (/^evalsha$/i.test(command)) return BY_SHA1.get(script);
  return /^eval$/i.test(command) ? BY_TEXT.get(script.replace(/\\n|\\x[0-9a-f]{2}/g, '')) : undefined;
}
