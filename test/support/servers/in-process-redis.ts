import { createHash } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { InProcessServer, type MessageListener } from '../../../lib/backends/redis/in-process/in-process-server.js';
import { LuaError } from '../../../lib/backends/redis/in-process/lua-table.js';
import { type Reply, StatusReply } from '../../../lib/backends/redis/in-process/redis-error.js';
import { TRANSLATED_SCRIPTS } from '../../../lib/backends/redis/in-process/translated-scripts.generated.js';
import type { ChannelKind } from '../../../lib/backends/redis/links/link.js';

/**
 * The Redis server in this process behind a port, so that a test can use the same client for it as for a redis-server.
 * It has a few more commands, with which tests look at keys and prepare them.
 */
export class InProcessRedis {
  readonly #clients: Redis[] = [];
  readonly #sockets = new Set<Socket>();
  #listener: Server | undefined;
  #port = 0;
  /** How often each command was executed, also by scripts. */
  readonly #calls = new Map<string, number>();
  /** Moves the server's clock, in ms. */
  skew = 0;
  readonly server = new InProcessServer({
    scripts: TRANSLATED_SCRIPTS,
    micros: () => Math.floor((performance.timeOrigin + performance.now() + this.skew) * 1_000),
  });

  constructor() {
    const { server } = this;
    const execute = server.execute.bind(server);
    server.execute = (name, args) => {
      const known = name.toLowerCase();
      this.#calls.set(known, (this.#calls.get(known) ?? 0) + 1);
      return execute(name, args);
    };
  }

  async start(): Promise<this> {
    const listener = createServer((socket) => this.#serve(socket));
    this.#listener = listener;
    await new Promise<void>((resolve) => {
      listener.listen(0, '127.0.0.1', resolve);
    });
    this.#port = (listener.address() as { port: number }).port;
    return this;
  }

  client(): Redis {
    const client = new Redis({ host: '127.0.0.1', port: this.#port, protocol: 2, enableReadyCheck: false });
    client.on('error', () => {});
    this.#clients.push(client);
    return client;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#listener?.close(resolve));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    const subscriptions = new Subscriptions(this.server, (message) => socket.write(encode(message), 'latin1'));
    let rest = '';
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => {
      subscriptions.end();
      this.#sockets.delete(socket);
    });
    socket.on('data', (data) => {
      rest += data.toString('latin1');
      for (let parsed = parse(rest); parsed !== undefined; parsed = parse(rest)) {
        rest = rest.slice(parsed.length);
        const [name, ...args] = parsed.words;
        const command = (name ?? '').toUpperCase();
        if (subscriptions.execute(command, args)) continue;
        socket.write(this.#answer(command, args), 'latin1');
      }
    });
  }

  #answer(command: string, args: readonly string[]): string {
    try {
      const own = this.#ownCommand(command, args);
      return encode(own === undefined ? this.server.execute(command, args) : own);
    } catch (error) {
      if (!(error instanceof LuaError)) return `-ERR ${(error as Error).message}\r\n`;
      return `-${error.message}\r\n`;
    }
  }

  #configure(command: string, [part, name, value]: readonly string[]): Reply {
    if (command === 'REPLICAOF') this.server.isReplica = part !== 'NO';
    else if (part === 'RESETSTAT') this.#calls.clear();
    else if (part === 'SET' && name === 'maxmemory') this.server.isFull = value !== '0';
    else throw new Error(`CONFIG ${part} ${name} is not for tests of scripts`);
    return new StatusReply('OK');
  }

  /** Runs a script as a user who may not call these commands, or publish to channels that do not begin with this. */
  async without<T>(commands: readonly string[], work: () => Promise<T>, publishesTo = ''): Promise<T> {
    const forbidden = commands.map((command) => command.toUpperCase());
    this.server.forbids = (command, [channel]) =>
      forbidden.includes(command) || (command === 'PUBLISH' && !channel?.startsWith(publishesTo));
    try {
      return await work();
    } finally {
      this.server.forbids = () => false;
    }
  }

  /** A key's value, for comparisons. */
  #dump(key: string): Reply {
    const { keys } = this.server;
    const type = keys.typeOf(key);
    const value = type && keys.find(key, type);
    return value === undefined ? null : JSON.stringify([type, typeof value === 'string' ? value : [...value]]);
  }

  /** Undefined: the server's own commands have it. */
  #ownCommand(command: string, args: readonly string[]): Reply | undefined {
    const { keys } = this.server;
    const [key = '', ...rest] = args;
    if (command === 'CLIENT') return new StatusReply('OK');
    if (command === 'CONFIG' || command === 'REPLICAOF') return this.#configure(command, args);
    if (command === 'INFO' && key === 'commandstats')
      return [...this.#calls].map(([name, count]) => `cmdstat_${name}:calls=${count},`).join('\r\n');
    if (command === 'SET' && rest[1] === 'PXAT') return keys.setString(key, rest[0] as string, Number(rest[2]));
    if (command === 'PEXPIREAT') {
      keys.expireAt(key, Number(rest[0]));
      return 1;
    }
    if (command === 'SCRIPT') return sha1(args[1] ?? '');
    if (command === 'EVAL') return this.server.execute('EVALSHA', [sha1(key), ...rest]);
    if (command === 'DUMP') return this.#dump(key);
    if (command === 'KEYS') return (this.server.execute('SCAN', ['0', 'MATCH', key]) as readonly Reply[])[1];
    if (command === 'MGET') return args.map((name) => keys.find(name, 'string') ?? null);
    if (command === 'FLUSHALL') {
      keys.clear();
      return new StatusReply('OK');
    }
    if (command === 'MSET') {
      for (let n = 0; n < args.length; n += 2) keys.setString(args[n] as string, args[n + 1] as string);
      return new StatusReply('OK');
    }
    if (command === 'PERSIST') {
      if (typeof keys.endOf(key) !== 'number') return 0;
      keys.persist(key);
      return 1;
    }
    return undefined;
  }
}

interface Kind {
  readonly kind: ChannelKind;
  readonly channels: Set<string>;
  readonly listener: MessageListener;
}

/** What a connection subscribes to. */
class Subscriptions {
  /** By the letter in front of SUBSCRIBE. */
  readonly #kinds: ReadonlyMap<string, Kind>;

  constructor(
    readonly server: InProcessServer,
    readonly write: (message: readonly Reply[]) => void,
  ) {
    this.#kinds = new Map([
      ['', kindOf('channel', (_name, channel, text) => write(['message', channel, text]))],
      ['S', kindOf('sharded', (_name, channel, text) => write(['smessage', channel, text]))],
      ['P', kindOf('pattern', (name, channel, text) => write(['pmessage', name, channel, text]))],
    ]);
  }

  /** Whether the command is one of subscriptions. */
  execute(command: string, args: readonly string[]): boolean {
    const [, prefix = '-', isEnd] = /^([SP]?)(UN)?SUBSCRIBE$/.exec(command) ?? [];
    const kind = this.#kinds.get(prefix);
    if (kind === undefined) return false;
    const names = isEnd && args.length === 0 ? [...kind.channels] : args;
    for (const name of names) {
      kind.channels[isEnd ? 'delete' : 'add'](name);
      this.server[isEnd ? 'unsubscribe' : 'subscribe'](kind.kind, name, kind.listener);
      this.write([command.toLowerCase(), name, this.#size]);
    }
    if (names.length === 0) this.write([command.toLowerCase(), null, this.#size]);
    return true;
  }

  end(): void {
    for (const { kind, channels, listener } of this.#kinds.values())
      for (const name of channels) this.server.unsubscribe(kind, name, listener);
  }

  get #size(): number {
    return [...this.#kinds.values()].reduce((sum, { channels }) => sum + channels.size, 0);
  }
}

const kindOf = (kind: ChannelKind, listener: MessageListener): Kind => ({ kind, channels: new Set(), listener });

const sha1 = (text: string) => createHash('sha1').update(text, 'latin1').digest('hex');

/** The first request of a buffer, once it is complete. */
function parse(buffer: string): { readonly words: string[]; readonly length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(buffer);
  if (head === null) return undefined;
  const words: string[] = [];
  let at = head[0].length;
  for (let n = 0; n < Number(head[1]); n++) {
    const size = /^\$(\d+)\r\n/.exec(buffer.slice(at, at + 16));
    if (size === null) return undefined;
    at += size[0].length;
    if (buffer.length < at + Number(size[1]) + 2) return undefined;
    words.push(buffer.slice(at, at + Number(size[1])));
    at += Number(size[1]) + 2;
  }
  return { words, length: at };
}

function encode(reply: Reply): string {
  if (reply === null) return '$-1\r\n';
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${reply.length}\r\n${reply}\r\n`;
  if (reply instanceof StatusReply) return `+${reply.text}\r\n`;
  return `*${(reply as readonly Reply[]).length}\r\n${(reply as readonly Reply[]).map(encode).join('')}`;
}
