import { holdWhile } from '../body/hold-while.js';
import { LockDeadlockError } from '../errors.js';
import { announceAcquired, startTime } from '../events/lease-events.js';
import { HeldLock } from '../hold/held-lock.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { LockTable } from '../lock-table.js';
import { admitCaller, beginWait } from '../queue/begin-wait.js';
import { checkResult } from '../scope/body-result.js';
import { currentScope, liveFrom, lockScopes } from '../scope/lock-scope.js';
import type { Services } from '../services.js';
import type { Lease } from '../terms/lease.js';
import { toLockName } from '../terms/lock-name.js';
import { isTraced, traceAcquisition } from '../trace/trace-acquisition.js';
import { FlightQueue, FlightWaiter, type SharedResult } from './flight-queue.js';
import type { FlightTerms } from './flight-terms.js';
import { resultOf, textOf } from './serialize-result.js';

/**
 * Runs `body`, unless it is already running or its result is stored, and resolves to the result. See
 * `LockService.singleFlight`.
 *
 * @param what the name of the call in errors
 */
export async function singleFlight(
  table: LockTable,
  name: string,
  terms: FlightTerms,
  what: string,
  body: (lease: Lease) => unknown,
): Promise<unknown> {
  const { services } = table;
  const ask = () => joinOrAcquire(table, name, terms, what);
  const turn = await (isTraced(services) ? traceAcquisition(services, [name], terms, ask) : ask());
  if ('value' in turn) return resultOf(turn.value, terms.serializer, name);
  const text = await run(table, turn, terms, body);
  return resultOf(text, terms.serializer, name);
}

/** Waits until the caller may run, or there is a result for it. */
async function joinOrAcquire(
  table: LockTable,
  name: string,
  terms: FlightTerms,
  what: string,
): Promise<LockLease | SharedResult> {
  const { services } = table;
  const key = services.keyOf(toLockName(name, what), what);
  const hasScope = lockScopes.getStore() !== undefined;
  if (hasScope && terms.reentry) refuseNested(services, name, key);
  const started = startTime(services);
  return new Promise((resolve, reject) => {
    const granted = (turn: HeldLock | SharedResult) => {
      if (!(turn instanceof HeldLock)) {
        announceShared(services, name, terms, turn, started);
        return resolve(turn);
      }
      const lease = table.createLease(turn.alone, terms);
      announceAcquired(services, lease, started);
      resolve(lease);
    };
    const waiter = new FlightWaiter(name, services.newOwner, terms, services.runtime, granted, reject);
    if (!admitCaller(services, waiter, what, key, hasScope)) return;
    beginWait(services, queueOf(table, name, key), waiter, hasScope);
  });
}

/** The queue of a single flight, created if necessary. */
export function queueOf({ services, queueEnded }: LockTable, name: string, key: string): FlightQueue {
  const { queues } = services.work;
  const known = queues.get('flight', name);
  if (known !== undefined) return known as FlightQueue;
  const queue = new FlightQueue(services, name, key, queueEnded);
  queues.add(queue);
  return queue;
}

function announceShared(
  { events, runtime }: Services,
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
function run(table: LockTable, lease: LockLease, terms: FlightTerms, body: (lease: Lease) => unknown): Promise<string> {
  const [held] = lease.locks;
  const queue = queueOf(table, lease.name, held.key);
  return holdWhile(table.services, lease, async () => {
    try {
      const result = await body(lease);
      const what = terms.method || `singleFlight() of '${lease.name}'`;
      checkResult(result, { what, body }, table.services.events);
      const value = textOf(result, terms.serializer, lease.name);
      queue.bodyEnded(held, { value });
      return value;
    } catch (error) {
      queue.bodyEnded(held, { error });
      throw error;
    }
  });
}

/** Refuses a caller that would wait for itself. @throws LockDeadlockError */
function refuseNested(services: Services, name: string, key: string): void {
  for (let scope = currentScope(); scope !== undefined; scope = liveFrom(scope.parent)) {
    const { lease } = scope;
    const held = lease.service === services ? lease.locks.find((lock) => lock.key === key) : undefined;
    if (held === undefined) continue;
    const { owner } = held;
    throw new LockDeadlockError(
      `The single flight '${name}' was called by code that holds this lock already, and would wait for itself. Call it outside, or give it another name`,
      name,
      [{ owner, holds: name, waitsFor: name }],
    );
  }
}
