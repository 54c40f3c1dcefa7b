import type { Acquired, LockType, PassRequest } from '../lock-backend.js';
import { announcedWriters, fairPlaces, fairQueue, fairTimeouts, fencingToken } from './lock-keys.js';
import { clockOf, type ScriptContext } from './script-context.js';
import { type ScriptName, scripts } from './scripts.js';

const SCRIPTS: Record<LockType, ScriptName> = {
  reentrant: 'pass-reentrant-2',
  fenced: 'pass-reentrant-2',
  fair: 'pass-fair-5',
  read: 'pass-read-2',
  write: 'pass-write-3',
};

/** Puts one owner in the place of another, in one step; undefined when that one was not there. */
export async function pass(request: PassRequest, context: ScriptContext): Promise<Acquired | undefined> {
  const { connection, tokens, single, publishMode, replicaCheck } = context;
  const { key, type, from, to, leaseTime, reserve } = request;
  const clock = type === 'fenced' ? fencingToken(key) : clockOf(connection, key);
  const publish = publishMode.known ?? (await publishMode.ask());
  const { reply, call } = await single.send(
    scripts[SCRIPTS[type]],
    [clock, key, ...companions(type, key)],
    [String(leaseTime), tokens.seen, String(reserve), from, to, publish],
  );
  if (!Array.isArray(reply)) return undefined;
  await replicaCheck?.confirm(call, [{ key, type, owner: to }]);
  return tokens.acquired(Number(reply[0]), Number(reply[1]));
}

function companions(type: LockType, key: string): string[] {
  if (type === 'fair') return [fairQueue(key), fairTimeouts(key), fairPlaces(key)];
  return type === 'write' ? [announcedWriters(key)] : [];
}
