import type { EngineContext } from '../engine-context.js';
import { LockDeadlockError } from '../errors.js';
import { HeldLock } from '../lease/held-lock.js';
import type { Lease } from '../lease/lease.js';
import { announceAcquired, startTime } from '../lease/lease-events.js';
import type { LockLease } from '../lease/lock-lease.js';
import { currentScope, liveFrom, lockScopes } from '../scope/lock-scope.js';
import { holdWhile } from '../scope/run-while-held.js';
import { toLockName } from '../terms/lock-name.js';
import { isTraced, traceAcquisition } from '../trace/trace-acquisition.js';
import { abortedError } from '../waiting/waiter.js';
import { FlightWaiter, type SharedResult } from './flight-queue.js';
import type { FlightTerms } from './flight-terms.js';
import { resultOf, textOf } from './serialize-result.js';

/**
 * Runs `body`, unless it is already running or its result is stored, and resolves to the result. See
 * `LockService.singleFlight`.
 *
 * @param what the name of the call in errors
 */
export async function singleFlight(
  context: EngineContext,
  name: string,
  terms: FlightTerms,
  what: string,
  body: (lease: Lease) => unknown,
): Promise<unknown> {
  const ask = () => joinOrAcquire(context, name, terms, what);
  const turn = await (isTraced(context) ? traceAcquisition(context, [name], terms, ask) : ask());
  if ('value' in turn) return resultOf(turn.value, terms.serializer, name);
  const text = await run(context, turn, terms, body);
  return resultOf(text, terms.serializer, name);
}

/** Waits until the caller may run, or there is a result for it. */
async function joinOrAcquire(
  context: EngineContext,
  name: string,
  terms: FlightTerms,
  what: string,
): Promise<LockLease | SharedResult> {
  const key = context.keyOf(toLockName(name, what), what);
  if (terms.signal?.aborted) throw abortedError({ what: `the single flight '${name}'`, name }, terms.signal);
  const hasScope = lockScopes.getStore() !== undefined;
  if (hasScope && terms.reentry) refuseNested(context, name, key);
  const scoped = context.admit(what, name, hasScope);
  const started = startTime(context);
  return new Promise((resolve, reject) => {
    const granted = (turn: HeldLock | SharedResult) => {
      if (!(turn instanceof HeldLock)) {
        announceShared(context, name, terms, turn, started);
        return resolve(turn);
      }
      const lease = context.createLease(turn.alone, terms);
      announceAcquired(context, lease, started);
      resolve(lease);
    };
    const waiter = new FlightWaiter(name, context.newOwner, terms, context.runtime, granted, reject);
    waiter.scoped = scoped;
    const { outages } = context;
    const refusal = outages.arrived(waiter, [key]);
    if (refusal !== undefined) return waiter.refuse(refusal);
    const queue = context.flightQueueOf(name, key);
    queue.enqueue(waiter);
    if (hasScope) context.deadlocks.add(waiter, queue.line);
  });
}

function announceShared(
  { events, runtime }: EngineContext,
  name: string,
  { group, method }: FlightTerms,
  { run: owner }: SharedResult,
  started: number | undefined,
): void {
  if (!events.hasListener('shared')) return;
  const waited = started === undefined ? 0 : runtime.monotonic() - started;
  events.emit('shared', { name, type: 'flight', group, method, owner, shared: true, waited });
}

/** Runs the body while the lease is held, and stores its result with the release. @returns the result as text */
function run(
  context: EngineContext,
  lease: LockLease,
  terms: FlightTerms,
  body: (lease: Lease) => unknown,
): Promise<string> {
  const [held] = lease.locks;
  const queue = context.flightQueueOf(lease.name, held.key);
  return holdWhile(context, lease, async () => {
    try {
      const value = textOf(await body(lease), terms.serializer, lease.name);
      queue.bodyEnded(held, { value });
      return value;
    } catch (error) {
      queue.bodyEnded(held, { error });
      throw error;
    }
  });
}

/** Refuses a caller that would wait for itself. @throws LockDeadlockError */
function refuseNested(context: EngineContext, name: string, key: string): void {
  for (let scope = currentScope(); scope !== undefined; scope = liveFrom(scope.parent)) {
    const { lease } = scope;
    const held = lease.service === context ? lease.locks.find((lock) => lock.key === key) : undefined;
    if (held === undefined) continue;
    const { owner } = held;
    throw new LockDeadlockError(
      `The single flight '${name}' was called by code that holds this lock already, and would wait for itself. Call it outside, or give it another name`,
      name,
      [{ owner, holds: name, waitsFor: name }],
    );
  }
}
