import { createHash } from 'node:crypto';
import { globPattern } from '../../directory/glob-pattern.js';
import { slotOf } from '../hash-slot.js';
import type { ChannelKind } from '../links/link.js';
import { type ScriptName, scripts } from '../scripts.js';
import type { Command, CommandServer } from './commands/command.js';
import { HASH_COMMANDS } from './commands/hash-commands.js';
import { KEY_COMMANDS } from './commands/key-commands.js';
import { LIST_COMMANDS } from './commands/list-commands.js';
import { SERVER_COMMANDS } from './commands/server-commands.js';
import { SORTED_SET_COMMANDS } from './commands/sorted-set-commands.js';
import { STRING_COMMANDS } from './commands/string-commands.js';
import { Keyspace } from './keyspace.js';
import { LuaLibrary } from './lua-library.js';
import { numberAsArgument, toLong } from './lua-number.js';
import { LuaError, LuaTable, type LuaValue } from './lua-table.js';
import { NotInProcessError, type Reply, redisError, StatusReply } from './redis-error.js';

const COMMANDS: Readonly<Record<string, Command>> = {
  ...KEY_COMMANDS,
  ...STRING_COMMANDS,
  ...HASH_COMMANDS,
  ...LIST_COMMANDS,
  ...SORTED_SET_COMMANDS,
  ...SERVER_COMMANDS,
};

/** A script in JavaScript. */
type TranslatedScript = () => LuaValue | readonly LuaValue[];

/** All scripts, on the library of a server. */
export type TranslatedScripts = (lua: LuaLibrary) => Readonly<Record<ScriptName, TranslatedScript>>;

/** Commands that change a key. Those that may also take memory are refused if it is full. */
const WRITES: Readonly<Record<string, 'takes memory' | 'takes none'>> = {
  DECRBY: 'takes memory',
  DEL: 'takes none',
  GETSET: 'takes memory',
  HDEL: 'takes none',
  HSET: 'takes memory',
  HSETNX: 'takes memory',
  INCRBY: 'takes memory',
  LREM: 'takes none',
  PEXPIRE: 'takes none',
  RPUSH: 'takes memory',
  SET: 'takes memory',
  ZADD: 'takes memory',
  ZREM: 'takes none',
  ZREMRANGEBYSCORE: 'takes none',
};

/** Receives messages of a channel. `subscribed` is what the listener has subscribed to: the channel or a pattern. */
export type MessageListener = (subscribed: string, channel: string, text: string) => void;

interface Subscribers {
  readonly kind: ChannelKind;
  /** A channel, or a pattern. */
  readonly subscribed: string;
  readonly pattern: RegExp | undefined;
  readonly listeners: Set<MessageListener>;
}

export interface InProcessServerOptions {
  readonly scripts: TranslatedScripts;
  /** The server's time in µs since 1970. */
  readonly micros: () => number;
  /** Refuses keys of another slot than a script's first key, as a cluster does. */
  readonly refusesOtherSlots?: boolean;
  /** What Lua prints as the address of its table `redis`, by which scripts tell servers apart. */
  readonly address?: string;
}

/**
 * A Redis server inside this process: the commands that the library and its scripts use, on strings with one byte a
 * character. It is strict: what it does not know is a {@link NotInProcessError}, and never a guess.
 */
export class InProcessServer implements CommandServer {
  readonly version = '7.0.15';
  readonly keys: Keyspace;
  /** The server's time in ms. It stands still while a script runs, as Redis' does. */
  readonly now = () => Math.floor(this.micros() / 1000);
  private readonly lua: LuaLibrary;
  /** By their digests. */
  private readonly scripts = new Map<string, TranslatedScript>();
  private readonly subscribers = new Map<string, Subscribers>();
  /** Whether commands that take memory are refused, unless their script has written already. */
  isFull = false;
  /** Whether it refuses to write, as a replica does. */
  isReplica = false;
  /** Whether the user may not execute a command. */
  forbids: (command: string, args: readonly string[]) => boolean = () => false;
  /** Whether the running script has written. */
  private hasWritten = false;
  /** The time while a script runs. */
  private frozen: number | undefined;
  /** The slot that the running script may use. */
  private slot: number | undefined;

  constructor(private readonly options: InProcessServerOptions) {
    this.keys = new Keyspace(this.now);
    const { address = `0x${createHash('sha1').update(`${serverCount++}`).digest('hex').slice(0, 12)}` } = options;
    this.lua = new LuaLibrary({
      call: (words) => this.callFromScript(words),
      version: 0x00070000 | 15,
      address: `table: ${address}`,
    });
    for (const [name, script] of Object.entries(options.scripts(this.lua)))
      this.scripts.set(scripts[name as ScriptName].sha1, script);
  }

  /** The server's time in µs since 1970. */
  micros(): number {
    return this.frozen ?? Math.floor(this.options.micros());
  }

  knows(command: string): boolean {
    return Object.hasOwn(COMMANDS, command.toUpperCase());
  }

  /**
   * Executes a command.
   *
   * @throws LuaError with the error reply
   * @throws NotInProcessError for what this server does not know
   */
  execute(name: string, args: readonly string[]): Reply {
    const upper = name.toUpperCase();
    const command = COMMANDS[upper];
    if (command === undefined) throw new NotInProcessError(`the command ${upper}`);
    if (args.length < command.least || args.length > command.most)
      throw redisError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
    if (this.slot !== undefined) this.checkSlots(command.keys(args), this.slot);
    this.checkPermitted(upper, args);
    return command.run(this, args);
  }

  /** Runs a script. @throws LuaError with NOSCRIPT, or with the error of the script */
  run(digest: string, keys: readonly string[], args: readonly string[]): Reply {
    const script = this.scripts.get(digest.toLowerCase());
    if (script === undefined) throw redisError('NOSCRIPT No matching script. Please use EVAL.');
    this.lua.KEYS = new LuaTable([...keys]);
    this.lua.ARGV = new LuaTable([...args]);
    this.frozen = this.micros();
    this.hasWritten = false;
    const [first] = keys;
    if (this.options.refusesOtherSlots && first !== undefined) this.slot = slotOf(first);
    try {
      return toReply(this.lua.first(script()));
    } finally {
      this.frozen = undefined;
      this.hasWritten = false;
      this.slot = undefined;
    }
  }

  subscribe(kind: ChannelKind, subscribed: string, listener: MessageListener): void {
    const id = `${kind} ${subscribed}`;
    let entry = this.subscribers.get(id);
    if (entry === undefined) {
      const pattern = kind === 'pattern' ? globPattern(subscribed) : undefined;
      entry = { kind, subscribed, pattern, listeners: new Set() };
      this.subscribers.set(id, entry);
    }
    entry.listeners.add(listener);
  }

  unsubscribe(kind: ChannelKind, subscribed: string, listener: MessageListener): void {
    const id = `${kind} ${subscribed}`;
    const listeners = this.subscribers.get(id)?.listeners;
    listeners?.delete(listener);
    if (listeners?.size === 0) this.subscribers.delete(id);
  }

  /** Returns how many receive the message. Sharded channels have messages of their own. */
  publish(kind: Exclude<ChannelKind, 'pattern'>, channel: string, text: string): number {
    let count = 0;
    for (const { kind: listensTo, subscribed, pattern, listeners } of this.subscribers.values()) {
      const isHeard = listensTo === kind ? subscribed === channel : kind === 'channel' && pattern?.test(channel);
      if (!isHeard) continue;
      count += listeners.size;
      for (const listener of listeners) listener(subscribed, channel, text);
    }
    return count;
  }

  /** How many subscribe to the channel itself, and not to a pattern. */
  countSubscribers(kind: Exclude<ChannelKind, 'pattern'>, channel: string): number {
    return this.subscribers.get(`${kind} ${channel}`)?.listeners.size ?? 0;
  }

  private callFromScript(words: readonly LuaValue[]): LuaValue {
    const args = words.map(toArgument);
    return fromReply(this.execute(args.shift() as string, args));
  }

  /** @throws Redis' error for a user without the right, a replica, and a full memory */
  private checkPermitted(name: string, args: readonly string[]): void {
    if (this.forbids(name, args))
      throw redisError(`NOPERM User limited has no permissions to run the '${name.toLowerCase()}' command`);
    const write = WRITES[name];
    if (write === undefined) return;
    if (this.isReplica) throw redisError("READONLY You can't write against a read only replica.");
    if (write === 'takes memory' && this.isFull && !this.hasWritten)
      throw redisError("OOM command not allowed when used memory > 'maxmemory'.");
    this.hasWritten = this.frozen !== undefined;
  }

  private checkSlots(keys: readonly string[], slot: number): void {
    for (const key of keys) {
      if (slotOf(key) !== slot)
        throw redisError('ERR Script attempted to access keys that do not hash to the same slot');
    }
  }
}

let serverCount = 0;

function toArgument(value: LuaValue): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return numberAsArgument(value);
  throw redisError('ERR Lua redis lib command arguments must be strings or integers');
}

function fromReply(reply: Reply): LuaValue {
  if (reply === null) return false;
  if (typeof reply === 'number' || typeof reply === 'string') return reply;
  if (reply instanceof StatusReply) return new LuaTable([], [['ok', reply.text]]);
  return new LuaTable((reply as readonly Reply[]).map(fromReply));
}

/** What Redis answers for the value that a script returns. */
function toReply(value: LuaValue): Reply {
  if (value === undefined || value === false) return null;
  if (value === true) return 1;
  if (typeof value === 'number') return toLong(value);
  if (typeof value === 'string') return value;
  if (!(value instanceof LuaTable)) return null;
  const error = value.get('err');
  if (typeof error === 'string') throw new LuaError(value);
  const status = value.get('ok');
  if (typeof status === 'string') return new StatusReply(status);
  const end = value.list.indexOf(undefined);
  return (end < 0 ? value.list : value.list.slice(0, end)).map(toReply);
}
