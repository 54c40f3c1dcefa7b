// Commands about one lock that are too rare to be sent in batches.
import {
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type AdoptReply,
  type AdoptRequest,
  type ExpectedHolders,
  type HeldType,
  hasLine,
  isReadWrite,
  KEPT_FAR_BACK,
  type LockState,
  type OwnerRef,
  type TransferRequest,
  type TypeWithLine,
  type WaiterRef,
} from '../../lock-backend.js';
import { servesLines } from '../../owner-ids.js';
import { keysOf } from '../calls/item-answer.js';
import type { ScriptContext } from '../calls/script-context.js';
import { fencingToken, readLease, tokenClock, tokenSource } from '../lock-keys.js';
import { arrayOf, integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { busyReply, copyOf, remainingTime } from './acquire-reply.js';
import { ENTER_SCRIPTS, FAIR_KEYS, LOCK_SCRIPTS, TOKEN_COUNTER } from './lock-scripts.js';

/** Replaces an owner by another one in one step; undefined when it did not hold the lock. */
export async function transfer(request: TransferRequest, context: ScriptContext): Promise<Acquired | undefined> {
  const { connection, highestToken, single, replicaCheck } = context;
  const { key, type, from, to, leaseTime, reserve } = request;
  const { name, keys } = LOCK_SCRIPTS[type].transfer;
  const publish = await context.publishMode.command(key);
  const { reply, call } = await single.callInTime(
    scripts[name],
    [tokenSource(connection, key, type), ...keysOf(keys, [request])],
    [highestToken.seen, String(leaseTime), String(reserve), from, to, publish],
  );
  if (reply === null) return undefined;
  const server = connection.description;
  const [token, reserved] = arrayOf(reply, server).map((part) => integerOf(part, server));
  await replicaCheck?.confirm(call, [{ key, type, owner: to }]);
  return { ...highestToken.acquired(token, reserved), ...copyOf(call) };
}

/** Acquires a lock, or makes or keeps a place in its line. */
export async function enterLine(request: AcquireRequest, context: ScriptContext): Promise<AcquireReply> {
  const { connection, highestToken, single, replicaCheck } = context;
  const { key, type, owner, leaseTime, reserve, waiterTimeout, newest } = request;
  // If replicas have to confirm the acquisition, a message about it is not enough.
  const nonce = (replicaCheck === undefined && request.nonce) || '';
  const publish = await context.publishMode.command(key);
  const keys = [tokenClock(connection, key), key];
  const args = [highestToken.seen, leaseTime, reserve, owner, waiterTimeout, publish].map(String);
  if (isReadWrite(type)) {
    keys.push(readLease(key, owner));
    args.push(String(Number(type === 'read')), String(Number(request.pastLine ?? false)));
  } else {
    if (type === 'fenced') keys.push(fencingToken(key));
    args.push(nonce, String(request.grantLease ?? leaseTime));
    if (type === 'permits') args.push(String(request.permits));
  }
  if (newest !== undefined) args.push(String(newest.superseded), String(newest.order ?? ''));
  const script = scripts[ENTER_SCRIPTS[type as TypeWithLine]];
  const { reply, call } = await single.callInTime(script, keys, args);
  const server = connection.description;
  const [first, second, third, place, superseded, order] = arrayOf(reply, server);
  if (place === undefined) {
    await replicaCheck?.confirm(call, [request]);
    const acquired = { ...highestToken.acquired(integerOf(first, server), integerOf(second, server)), ...copyOf(call) };
    return newest === undefined ? acquired : { ...acquired, ...newestCall(third) };
  }
  const busy = { ...busyReply(first, second, server, third), ...copyOf(call), ...newestCall(superseded, order) };
  if (superseded === -1) return { ...busy, superseded: true };
  if (place === KEPT_FAR_BACK) return { ...busy, keptLonger: true };
  const listensToOthers = place === 1 && busy.heldAs === undefined && !servesLines(String(second));
  return listensToOthers ? { ...busy, heldAs: 'reentrant' } : busy;
}

/** The answer of enter-as-newest.lua, if it knows how many calls this one has superseded. */
function newestCall(superseded: unknown, order?: unknown): Pick<AcquireReply, 'newest'> {
  if (typeof superseded !== 'number' || superseded < 0) return {};
  return { newest: { superseded, order: typeof order === 'number' ? order : undefined } };
}

/** Takes over a detached lock from the owner of its ticket. */
export async function adopt(request: AdoptRequest, context: ScriptContext): Promise<AdoptReply> {
  const { connection, highestToken, single, replicaCheck } = context;
  const { key, type, clientId, secret, to, leaseTime } = request;
  const publish = await context.publishMode.command(key);
  const { reply, call } = await single.callInTime(
    scripts['adopt-2'],
    [key, tokenSource(connection, key, type)],
    [highestToken.seen, String(leaseTime), clientId, secret, to, isReadWrite(type) ? ':write' : '', publish],
  );
  const server = connection.description;
  const parts = arrayOf(reply, server);
  if (parts.length === 1) return { acquired: false, holder: String(parts[0]) || undefined };
  const [token, reserved] = parts.map((part) => integerOf(part, server));
  await replicaCheck?.confirm(call, [{ key, type, owner: to }]);
  return { ...highestToken.acquired(token, reserved), ...copyOf(call) };
}

/** The state of a lock of any type. */
export async function inspect(key: string, { single, connection }: ScriptContext): Promise<LockState> {
  const keys = keysOf([...FAIR_KEYS, TOKEN_COUNTER], [{ key }]);
  const reply = await single.call(scripts['inspect-5'], keys, []);
  const [mode, held, queue, token] = arrayOf(reply, connection.description) as [string, unknown[], string[], unknown];
  const owners: LockState['owners'][number][] = [];
  for (let n = 0; n < held.length; n += 2) {
    owners.push({ owner: String(held[n]), remaining: remainingTime(Number(held[n + 1])) });
  }
  return {
    mode: owners.length === 0 ? 'free' : isMode(mode) ? mode : 'exclusive',
    owners,
    queue,
    token: token === undefined || token === null ? undefined : Number(token),
  };
}

function isMode(mode: string): mode is 'read' | 'write' | 'permits' {
  return mode === 'read' || mode === 'write' || mode === 'permits';
}

/**
 * Releases a lock of any type, from all owners or only from the expected ones. Returns the owners that have lost
 * it.
 */
export async function forceRelease(
  key: string,
  expected: ExpectedHolders | undefined,
  context: ScriptContext,
): Promise<readonly string[]> {
  const publish = await context.publishMode.command(key);
  const keys = keysOf([...FAIR_KEYS, TOKEN_COUNTER], [{ key }]);
  const whom = expected === undefined ? ['0', ''] : ['1', String(expected.token ?? ''), ...expected.owners];
  const owners = await context.single.call(scripts['force-release-5'], keys, [publish, ...whom]);
  return Array.isArray(owners) ? owners.map(String) : [];
}

/**
 * Keeps waiters registered, with one script call for each lock. False: that waiter was no longer registered. The reply for
 * each says how many times the waiterTimeout it is kept.
 */
export async function refreshWaiters(
  waiters: readonly WaiterRef[],
  waiterTimeout: number,
  context: ScriptContext,
  keptLonger?: () => void,
): Promise<readonly boolean[]> {
  const kept = new Map<OwnerRef, number>();
  await Promise.all(
    groupByLock(waiters).map(async (group) => {
      const answers = await refresh(group, waiterTimeout, context);
      for (const [index, waiter] of group.entries()) kept.set(waiter, answers[index]);
    }),
  );
  const times = waiters.map((waiter) => kept.get(waiter) ?? 0);
  if (times.length > 0 && times.every((time) => time >= KEPT_FAR_BACK)) keptLonger?.();
  return times.map((time) => time > 0);
}

function groupByLock(waiters: readonly WaiterRef[]): WaiterRef[][] {
  const groups = new Map<string, WaiterRef[]>();
  for (const waiter of waiters) {
    const name = `${waiter.type} ${waiter.key}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [waiter]);
    else group.push(waiter);
  }
  return [...groups.values()];
}

async function refresh(
  group: readonly WaiterRef[],
  waiterTimeout: number,
  context: ScriptContext,
): Promise<readonly number[]> {
  const { single, connection } = context;
  const [{ key, type }] = group;
  const script = LOCK_SCRIPTS[type].waiters?.refresh;
  if (script === undefined) return [];
  const args: string[] = [await context.publishMode.command(key)];
  if (hasLine(type)) args.push(tokenClock(connection, key));
  args.push(String(waiterTimeout));
  for (const { owner, nonce = '' } of group) args.push(...(hasLine(type) ? [owner, nonce] : [owner]));
  const reply = await single.call(scripts[script.name], keysOf(script.keys, [group[0]]), args);
  const server = connection.description;
  return arrayOf(reply, server).map((answer) => integerOf(answer, server));
}

/** Removes a waiter, and wakes the next one if this waiter had been woken. */
export async function removeWaiter(waiter: OwnerRef, context: ScriptContext): Promise<void> {
  const script = LOCK_SCRIPTS[waiter.type].waiters?.remove;
  if (script === undefined) return;
  const { key, type, owner } = waiter;
  const args: string[] = [await context.publishMode.command(key)];
  if (hasLine(type)) args.push(tokenClock(context.connection, key));
  await context.single.call(scripts[script.name], keysOf(script.keys, [waiter]), [...args, owner]);
}

/** Makes the tokens of a lock continue above `token`. */
export async function raiseToken(key: string, type: HeldType, token: number, context: ScriptContext): Promise<void> {
  const { connection, highestToken, single } = context;
  const reply = await single.call(scripts['raise-token-1'], [tokenSource(connection, key, type)], [String(token)]);
  integerOf(reply, connection.description);
  highestToken.note(token);
}
