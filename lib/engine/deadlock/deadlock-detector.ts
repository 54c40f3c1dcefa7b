import type { BackendError } from '../../backends/lock-backend.js';
import type { Runtime, Timer } from '../../backends/runtime.js';
import type { WaitBackend } from '../../backends/wait-backend.js';
import type { HolderClient } from '../describe-holder.js';
import { PERMIT_HAND_OFF_BUDGET } from '../hold/hand-off-budget.js';
import type { LockWaiter } from '../hold/held-lock.js';
import { CHECKED, invariant } from '../invariants.js';
import { lockScopes } from '../scope/lock-scope.js';
import { BackendTime } from './backend-time.js';
import { confirmDeadlock, deadlockOf, type PossibleDeadlock } from './confirm-deadlock.js';
import { deadlockError, ownerOf } from './deadlock-error.js';
import { findCycle, WaitReader } from './find-cycle.js';
import { findKnot } from './find-knot.js';
import { NestedWait, type WaitingPlace } from './nested-wait.js';
import { WaitJournal } from './wait-journal.js';

/**
 * A wait of this length, in milliseconds, may be part of a deadlock and is stored, under the owner ids of the locks that
 * its caller holds. The next holder of such a lock must not get the same owner id by a hand-off, because it would be
 * mistaken for the caller that waits. The budget for hand-offs of those locks began before the wait, so it is spent.
 */
const LONG = 1_000;
/** How often long waits are written to the journal and followed, in milliseconds. */
const HEARTBEAT = 250;
/**
 * A wait that has lasted this long, in milliseconds, is followed only at every fourth heartbeat, because a cycle is
 * found by the wait that began last. A branch is always followed, because others that began later come before it.
 */
const OLD = 3_000;
/** How many waits take part at most, the oldest first. Each costs a command or two per heartbeat. */
const MOST_WAITS = 500;
/** The maximum number of holders of one lock that are written to the journal. */
const MOST_HOLDERS = 100;
/** After this many heartbeats in a row without a usable answer, the log warns that deadlocks cannot be detected. */
const MOST_FAILURES = 4;
/** While there are fewer waits than this, ended ones are removed only at the heartbeat. */
const FIRST_SWEEP = 64;

/**
 * Finds deadlocks: callers, in any processes, that hold locks and wait for each other in a cycle. A caller that runs
 * in a lock scope and has waited for over a second repeatedly writes its wait to a journal, and follows the waits of
 * others from holder to holder. If it comes back to itself, and is the last wait of the cycle (see victim-order.ts),
 * its wait is refused. Locks that several hold by `permits` are followed by find-knot.ts.
 *
 * This costs other callers nothing, because callers outside a scope are not registered here.
 */
export class DeadlockDetector {
  /** In the order of their arrival. Ended waits stay until the next sweep. */
  private waits: NestedWait[] = [];
  /** The ids of ended waits that are to be removed from the journal. */
  private ended = new Set<string>();
  private sweepAt = FIRST_SWEEP;
  private timer: Timer | undefined;
  private readonly journal: WaitJournal | undefined;
  private readonly time: BackendTime | undefined;
  private beats = 0;
  private ids = 0;
  private beating = false;
  /** How many heartbeats have failed since waits were last written and followed. */
  private failures = 0;
  private warned = false;
  private closed = false;

  /**
   * @param backend undefined if deadlocks are not to be detected
   * @param identify finds the client of an owner, for the error
   * @param warn writes to the log
   */
  constructor(
    private readonly backend: WaitBackend | undefined,
    private readonly runtime: Runtime,
    private readonly clientId: string,
    private readonly identify: (owner: string) => Promise<HolderClient | undefined>,
    private readonly warn: (message: string) => void,
  ) {
    if (CHECKED) invariant(PERMIT_HAND_OFF_BUDGET < LONG, 'a lock is handed off while a wait of its owner is stored');
    this.journal = backend && new WaitJournal(backend);
    this.time = backend && new BackendTime(backend, runtime);
  }

  /**
   * Registers a caller that runs in a scope and has just begun to wait. A tentative wait is ignored, because its caller
   * can do without the lock. A wait with `reentry: false` is, too, because its caller does not belong to the scope.
   */
  add(waiter: LockWaiter, place: WaitingPlace): void {
    const scope = lockScopes.getStore();
    if (this.backend === undefined || this.closed || scope === undefined || waiter.settled) return;
    if (waiter.terms.tentative || !waiter.terms.reentry) return;
    const id = `${this.clientId}/${++this.ids}`;
    this.waits.push(new NestedWait(id, waiter, place, this.runtime.monotonic(), scope));
    if (this.waits.length >= this.sweepAt) this.sweep();
    this.timer ??= this.runtime.timer(LONG, this.tick);
  }

  close(): void {
    this.closed = true;
    this.waits = [];
    this.timer?.cancel();
    this.timer = undefined;
  }

  private readonly tick = (): void => {
    this.timer = undefined;
    this.sweep();
    const { journal, runtime, waits } = this;
    const now = runtime.monotonic();
    const long = waits.slice(0, MOST_WAITS).filter(({ since }) => now - since >= LONG);
    const isNeeded = long.length > 0 || !journal?.isEmpty;
    if (isNeeded) this.timer = runtime.timer(HEARTBEAT, this.tick, long.length > 0 ? 'keep-alive' : undefined);
    else if (waits.length > 0) this.timer = runtime.timer(waits[0].since + LONG - now, this.tick);
    if (!isNeeded || this.beating) return;
    this.beating = true;
    this.heartbeat(long)
      .catch((error) => this.failed(error))
      .finally(() => {
        this.beating = false;
      });
  };

  private async heartbeat(long: readonly NestedWait[]): Promise<void> {
    await this.time?.date(long);
    await this.findHolders(long);
    const going = long.filter(({ continues }) => continues);
    for (const { waiter, id } of going) waiter.onSettled ??= () => this.removeSoon(id);
    await this.journal?.write(going);
    const now = this.runtime.monotonic();
    const followsAll = ++this.beats % 4 === 0;
    const isDue = ({ since, confirming, isBranch }: NestedWait) =>
      !confirming && (followsAll || isBranch || now - since < OLD);
    const due = going.filter((wait) => wait.continues && isDue(wait));
    if (due.length === 0) return;
    await this.follow(due);
    this.failures = 0;
    this.warned = false;
  }

  private async findHolders(waits: readonly NestedWait[]): Promise<void> {
    const asked = new Map<string, Promise<readonly string[]>>();
    const ask = (key: string): Promise<readonly string[]> => {
      const answer = asked.get(key) ?? (this.backend as WaitBackend).holders(key).catch(() => []);
      asked.set(key, answer);
      return answer;
    };
    await Promise.all(
      waits.map(async (wait) => {
        const gate = wait.gateId(this.clientId);
        wait.noteHolders(gate === undefined ? (await ask(wait.place.key)).slice(0, MOST_HOLDERS) : [gate]);
      }),
    );
  }

  private async follow(waits: readonly NestedWait[]): Promise<void> {
    const reader = new WaitReader(this.backend as WaitBackend);
    await Promise.all(
      waits.map(async (wait) => {
        const start = { id: wait.id, record: wait.record };
        const cycle = await findCycle(reader, start);
        const found = cycle === undefined ? await findKnot(reader, start) : deadlockOf(cycle);
        if (found === undefined) return;
        wait.confirming = true;
        this.confirm(wait, found).catch(() => {}); // the next heartbeat tries again
      }),
    );
  }

  private async confirm(wait: NestedWait, found: PossibleDeadlock): Promise<void> {
    const { waiter, place } = wait;
    const { backend, runtime, time } = this;
    const { waits, cycle } = found;
    const hasEnded = (id: string) => this.closed || this.hasEnded(id);
    try {
      const [confirmed, clients] = await Promise.all([
        confirmDeadlock(backend as WaitBackend, runtime, found, hasEnded, () => (time as BackendTime).now()),
        Promise.all(cycle.map((member) => this.identify(ownerOf(member)))),
      ]);
      const isDeadlock = confirmed && found.isDeadlock(waits.filter(({ id }) => !hasEnded(id)));
      if (isDeadlock) place.dismiss(waiter, deadlockError(cycle, clients));
    } finally {
      wait.confirming = false;
    }
  }

  /** Whether this is a wait of this service that has ended. */
  private hasEnded(id: string): boolean {
    if (!id.startsWith(`${this.clientId}/`)) return false;
    return !this.waits.some((wait) => wait.id === id && !wait.waiter.settled);
  }

  /** Removes the wait from the journal, together with all others that end in this turn of the event loop. */
  private removeSoon(id: string): void {
    this.ended.add(id);
    if (this.ended.size > 1) return;
    this.runtime.detached(() =>
      queueMicrotask(() => {
        const { ended } = this;
        this.ended = new Set();
        if (!this.closed) this.journal?.remove(ended);
      }),
    );
  }

  /**
   * Logs repeated failures. The next heartbeat tries again. A Redis that is out of memory refuses writes to the
   * journal, although it still renews locks.
   */
  private failed({ kind, message }: BackendError): void {
    this.failures++;
    const lasts = kind === 'denied' || this.failures >= MOST_FAILURES;
    if (!lasts || this.warned) return;
    this.warned = true;
    this.warn(`Deadlocks cannot be detected: ${message}`);
  }

  /** Forgets waits that have ended. */
  private sweep(): void {
    this.waits = this.waits.filter(({ waiter }) => !waiter.settled);
    this.sweepAt = Math.max(FIRST_SWEEP, 2 * this.waits.length);
  }
}
