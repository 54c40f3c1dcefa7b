import type { ChannelKind } from '../../links/link.js';
import type { Keyspace } from '../keyspace.js';
import { NotInProcessError, type Reply, redisError } from '../redis-error.js';

/** What commands need of their server. */
export interface CommandServer {
  readonly version: string;
  readonly keys: Keyspace;
  /** Its time in ms. */
  readonly now: () => number;
  /** Its time in µs. */
  micros(): number;
  knows(command: string): boolean;
  publish(kind: Exclude<ChannelKind, 'pattern'>, channel: string, text: string): number;
  countSubscribers(kind: Exclude<ChannelKind, 'pattern'>, channel: string): number;
  run(digest: string, keys: readonly string[], args: readonly string[]): Reply;
}

/** A command of Redis: how many arguments it takes, and what it does. */
export interface Command {
  readonly least: number;
  readonly most: number;
  /** Which of its arguments are keys. */
  readonly keys: (args: readonly string[]) => readonly string[];
  run(server: CommandServer, args: readonly string[]): Reply;
}

type Run = (server: CommandServer, ...args: string[]) => Reply;

const firstKey = (args: readonly string[]) => args.slice(0, 1);
const noKey = () => [];

/** A command whose first argument is its key. */
export function onKey(least: number, most: number, run: Run): Command {
  return { least, most, keys: firstKey, run: (server, args) => run(server, ...args) };
}

/** A command all of whose arguments are keys. */
export function onKeys(run: Run): Command {
  return { least: 1, most: Infinity, keys: (args) => args, run: (server, args) => run(server, ...args) };
}

/** A command without keys. */
export function withoutKeys(least: number, most: number, run: Run): Command {
  return { least, most, keys: noKey, run: (server, args) => run(server, ...args) };
}

/** @throws ERR unless the text is an integer of 64 bits */
export function toInteger(text: string): number {
  if (!/^(?:0|-?[1-9]\d{0,18})$/.test(text) || BigInt.asIntN(64, BigInt(text)) !== BigInt(text))
    throw redisError('ERR value is not an integer or out of range');
  return Number(text);
}

/** An option in capitals. @throws NotInProcessError for any other */
export function optionOf<T extends string>(command: string, text: string, known: readonly T[]): T {
  const option = known.find((name) => name === text.toUpperCase());
  if (option === undefined) throw new NotInProcessError(`the option '${text}' of ${command}`);
  return option;
}

/** The part of a list between two indexes, of which negative ones count from the end. */
export function slice<T>(list: readonly T[], from: string, to: string): T[] {
  const at = (index: number) => (index < 0 ? Math.max(0, index + list.length) : index);
  const last = toInteger(to);
  return list.slice(at(toInteger(from)), last < 0 ? Math.max(0, last + list.length + 1) : last + 1);
}
