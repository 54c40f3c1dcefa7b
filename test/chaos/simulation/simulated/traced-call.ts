import {
  type AcquireAllReply,
  type AcquireReply,
  type HeldType,
  isReadWrite,
  type ReleaseReply,
} from '../../../../lib/backends/lock-backend.js';
import { LOCK_SCRIPTS } from '../../../../lib/backends/redis/commands/lock-scripts.js';
import { type ScriptName, scripts } from '../../../../lib/backends/redis/scripts.js';
import type { Subject } from './link-trace.js';

/** One request in a script call. */
export interface TracedItem {
  /** The name of its request: see {@link requestName}. */
  readonly name: string;
  readonly key: string;
}

/** A call of a script about locks: what it asks for, and what its reply says of that. */
export interface TracedCall {
  readonly script: ScriptName;
  readonly items: readonly TracedItem[];
  /** The server time in ms after which it is not executed. */
  readonly deadline: number | undefined;
  /** The highest token that its process has seen. */
  readonly seen: number;
  /** How many tokens it reserves with each acquisition. */
  readonly reserve: number;
  /** For how many acquisitions it draws tokens at once. */
  readonly draws: number;
  /** The arguments of a call with these items alone. */
  only(items: readonly number[]): readonly string[];
  /** The answer to an item, as the backend gives it to the engine. */
  answer(reply: unknown, item: number): unknown;
}

/** By which a request and its item in a call find each other. A process makes no two such requests at once. */
export function requestName(subject: Subject): string {
  switch (subject.kind) {
    case 'keep':
      return name(subject.kind, subject.key, ...subject.owners);
    case 'force':
      return name(subject.kind, subject.key);
    case 'raise':
      return name(subject.kind, subject.token);
    case 'acquire-all':
      return name(subject.kind, subject.keys[0], subject.owner);
    case 'leave':
      return name(subject.kind, subject.key, subject.owner);
    default:
      return name(subject.kind, sideOf(subject.type), subject.key, subject.owner);
  }
}

/** An owner may hold both sides of a read/write lock. */
function sideOf(type: HeldType): string {
  return isReadWrite(type) ? type : '';
}

function name(...parts: readonly unknown[]): string {
  return parts.join(' ');
}

const BY_DIGEST = new Map(Object.entries(scripts).map(([script, { sha1 }]) => [sha1, script as ScriptName]));
const BY_SOURCE = new Map(Object.entries(scripts).map(([script, { source }]) => [source, script as ScriptName]));

/** What a command of a client asks for; undefined if it is not about locks. */
export function tracedCall(command: string, args: readonly string[]): TracedCall | undefined {
  const script = (command === 'evalsha' ? BY_DIGEST : command === 'eval' ? BY_SOURCE : undefined)?.get(args[0]);
  if (script === undefined) return undefined;
  const count = Number(args[1]);
  const keys = args.slice(2, 2 + count);
  return FORMS[script]?.(script, keys, args.slice(2 + count));
}

type Form = (script: ScriptName, keys: readonly string[], args: readonly string[]) => TracedCall;

const NOTHING = { deadline: undefined, seen: 0, reserve: 0, draws: 0 };

function command(script: ScriptName, keys: readonly string[], args: readonly string[]): readonly string[] {
  return [scripts[script].sha1, String(keys.length), ...keys, ...args];
}

/** `first`: the arguments that all items share. Each item has as many of the other keys, and an owner. */
function batch(
  kind: 'acquire' | 'release' | 'renew',
  side: string,
  shared: { readonly keys: number; readonly args: number },
  answer: TracedCall['answer'],
): Form {
  return (script, keys, args) => {
    const owners = args.slice(shared.args);
    const each = (keys.length - shared.keys) / owners.length;
    const keysOf = (item: number) => keys.slice(shared.keys + item * each, shared.keys + (item + 1) * each);
    return {
      ...NOTHING,
      ...(kind === 'acquire' && { ...limits(args), draws: owners.length }),
      script,
      items: owners.map((owner, item) => ({ name: name(kind, side, keysOf(item)[0], owner), key: keysOf(item)[0] })),
      only: (items) =>
        command(
          script,
          [...keys.slice(0, shared.keys), ...items.flatMap(keysOf)],
          [...args.slice(0, shared.args), ...items.map((item) => owners[item])],
        ),
      answer,
    };
  };
}

function limits([deadline, seen, , reserve]: readonly string[]) {
  return { deadline: Number(deadline), seen: Number(seen), reserve: Number(reserve) };
}

/** A call for one request. */
function single(
  nameOf: (key: string, args: readonly string[]) => string,
  answer: (reply: unknown) => unknown,
  { lock = 0, takes = false } = {},
): Form {
  return (script, keys, args) => ({
    ...NOTHING,
    ...(takes && { ...limits(args), draws: 1 }),
    script,
    items: [{ name: nameOf(keys[lock], args), key: keys[lock] }],
    only: () => command(script, keys, args),
    answer,
  });
}

function acquired(reply: unknown, item: number): AcquireReply {
  if (!Array.isArray(reply)) return { acquired: true, token: Number(reply) + item, reserved: 0 };
  const [reserved, ...answers] = reply;
  const answer = answers[item];
  if (!Array.isArray(answer)) return { acquired: true, token: Number(answer), reserved: Number(reserved) };
  const [first, second, third] = answer;
  return third === 1 ? { acquired: true, token: first, reserved: second } : busy(second);
}

function busy(holder: unknown): AcquireReply {
  return { acquired: false, remaining: 0, holder: String(holder) || undefined };
}

function entered(reply: unknown): AcquireReply {
  const [first, second, , place] = reply as readonly unknown[];
  if (place !== undefined) return busy(second);
  return { acquired: true, token: Number(first), reserved: Number(second) };
}

/** See scripts/includes/release-replies.lua. */
function released(reply: unknown, item: number): Pick<ReleaseReply, 'released'> {
  const answer = Array.isArray(reply) ? reply[item] : reply;
  const [result] = Array.isArray(answer) ? answer : [answer];
  return { released: (result > -3 ? result : -3 - result) !== -1 };
}

function allAcquired(reply: unknown, count: number): AcquireAllReply {
  if (Array.isArray(reply)) return { ...(busy('') as AcquireReply & { acquired: false }), index: 0 };
  return { acquired: true, tokens: Array.from({ length: count }, (_, n) => Number(reply) + n) };
}

const enter = (sideIn: (args: readonly string[]) => string) =>
  single((key, args) => name('acquire', sideIn(args), key, args[4]), entered, { lock: 1, takes: true });
const transfer = (side: string) =>
  single(
    (key, args) => name('transfer', side, key, args[5]),
    (reply) =>
      reply === null ? undefined : { token: (reply as number[])[0], reserved: (reply as number[])[1], acquired: true },
    { lock: 1, takes: true },
  );
const adopt = single(
  (key, args) => name('adopt', key, args[5]),
  (reply) => ((reply as readonly unknown[]).length === 1 ? busy('') : entered(reply)),
  { takes: true },
);
const keep = (first: number, each: number) =>
  single(
    (key, args) => name('keep', key, ...args.slice(first).filter((_, n) => n % each === 0)),
    (reply) => (reply as readonly number[]).map((times) => times > 0),
  );
const leave = (owner: number) =>
  single(
    (key, args) => name('leave', key, args[owner]),
    () => undefined,
  );

const acquireAllReentrant: Form = (script, keys, args) => {
  const callers = Number(args[3]);
  const sizes = args.slice(4, 4 + callers).map(Number);
  const owners = args.slice(4 + callers);
  const begins = sizes.map((_, n) => sizes.slice(0, n).reduce((sum, size) => sum + size, 0));
  return {
    script,
    items: begins.map((at) => ({ name: name('acquire-all', keys[1 + at], owners[at]), key: keys[1 + at] })),
    ...limits(args),
    reserve: 0,
    draws: keys.length - 1,
    only: () => command(script, keys, args),
    answer: (reply, item) => allAcquired(Array.isArray(reply) ? reply[item] : reply, sizes[item]),
  };
};

const acquireAll: Form = (script, keys, args) => ({
  script,
  items: [{ name: name('acquire-all', keys[1], args[4]), key: keys[1] }],
  ...limits(args),
  reserve: 0,
  draws: (keys.length - 1) / 3,
  only: () => command(script, keys, args),
  answer: (reply) => {
    const [outcome, ...tokens] = reply as readonly number[];
    return outcome === 1 ? { acquired: true, tokens } : allAcquired([], 0);
  },
});

const ofEachType = Object.entries(LOCK_SCRIPTS).flatMap(([type, { acquire, release, renew }]): [string, Form][] => [
  [
    acquire.name,
    batch('acquire', sideOf(type as HeldType), { keys: 1, args: acquire.option === undefined ? 4 : 5 }, acquired),
  ],
  [
    release.name,
    batch('release', sideOf(type as HeldType), { keys: 0, args: (type as HeldType) === 'fair' ? 1 : 2 }, released),
  ],
  [
    renew.name,
    batch(
      'renew',
      sideOf(type as HeldType),
      { keys: 0, args: 2 },
      (reply, item) => (reply as number[])[1 + item] === 1,
    ),
  ],
]);

const FORMS: Partial<Record<ScriptName, Form>> = {
  ...Object.fromEntries(ofEachType),
  'enter-line': enter(() => ''),
  'enter-read-write-line-3': enter((args) => (args[7] === '1' ? 'read' : 'write')),
  'enter-permits-line': enter(() => ''),
  'acquire-all-reentrant': acquireAllReentrant,
  'acquire-all': acquireAll,
  'transfer-reentrant-2': transfer(''),
  'transfer-permits-2': transfer(''),
  'transfer-write-4': transfer('write'),
  'adopt-2': (...call) => ({ ...adopt(...call), reserve: 0 }),
  'refresh-places-1': keep(3, 2),
  'refresh-fair-waiters-4': keep(2, 1),
  'remove-place-1': leave(2),
  'remove-fair-waiter-4': leave(1),
  'force-release-5': single(
    (key) => name('force', key),
    (reply) => (Array.isArray(reply) ? reply : []),
  ),
  'raise-token-1': single(
    (_, args) => name('raise', args[0]),
    () => undefined,
  ),
};
