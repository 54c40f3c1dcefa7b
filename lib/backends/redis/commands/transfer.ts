import type { Acquired, LockType, TransferRequest } from '../../lock-backend.js';
import { integerOf, listOf } from '../calls/reply-shape.js';
import { clockOf, type ScriptContext } from '../calls/script-context.js';
import { announcedWriters, fairPlaces, fairQueue, fairTimeouts, fencingToken } from '../lock-keys.js';
import { type ScriptName, scripts } from '../scripts.js';
import { copyOf } from './acquire-all.js';

const SCRIPTS: Record<LockType, ScriptName> = {
  reentrant: 'pass-reentrant-2',
  fenced: 'pass-reentrant-2',
  fair: 'pass-fair-5',
  read: 'pass-read-2',
  write: 'pass-write-3',
};

/** Puts one owner in the place of another, in one step; undefined when that one was not there. */
export async function pass(request: TransferRequest, context: ScriptContext): Promise<Acquired | undefined> {
  const { connection, tokens, single, publishMode, replicaCheck } = context;
  const { key, type, from, to, leaseTime, reserve } = request;
  const clock = type === 'fenced' ? fencingToken(key) : clockOf(connection, key);
  const publish = publishMode.known ?? (await publishMode.ask());
  const { reply, call } = await single.callInTime(
    scripts[SCRIPTS[type]],
    [clock, key, ...companions(type, key)],
    [tokens.seen, String(leaseTime), String(reserve), from, to, publish],
  );
  if (reply === null) return undefined;
  const server = connection.description;
  const [token, reserved] = listOf(reply, server).map((part) => integerOf(part, server));
  await replicaCheck?.confirm(call, [{ key, type, owner: to }]);
  return { ...tokens.acquired(token, reserved), ...copyOf(call) };
}

function companions(type: LockType, key: string): string[] {
  if (type === 'fair') return [fairQueue(key), fairTimeouts(key), fairPlaces(key)];
  return type === 'write' ? [announcedWriters(key)] : [];
}
