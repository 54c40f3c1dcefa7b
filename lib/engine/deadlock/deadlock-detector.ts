import type { BackendError } from '../../backends/lock-backend.js';
import type { Runtime, Timer } from '../../backends/runtime.js';
import type { WaitBackend } from '../../backends/wait-backend.js';
import type { HolderClient } from '../clients/describe-holder.js';
import type { LockWaiter } from '../lease/held-lock.js';
import { lockScopes } from '../scope/lock-scope.js';
import { BackendTime } from './backend-time.js';
import { confirmCycle } from './confirm-cycle.js';
import { deadlockError, ownerOf } from './deadlock-error.js';
import { findCycle, WaitReader } from './find-cycle.js';
import type { FoundWait } from './journal-record.js';
import { NestedWait, type WaitingPlace } from './nested-wait.js';
import { WaitJournal } from './wait-journal.js';

/**
 * A wait that has lasted this many milliseconds may be part of a deadlock. Its caller's locks are not handed off any
 * more: see HandOffBudget.
 */
const LONG = 1_000;
/** How often long waits are written down, and followed, in milliseconds. */
const BEAT = 250;
/** A wait older than this is followed at every fourth beat only. */
const OLD = 3_000;
/** How many waits take part, the oldest first: each costs a command or two at every beat. */
const MOST_WAITS = 500;
/** How many holders of one lock a record lists. */
const MOST_HOLDERS = 100;
/** After this many beats in a row without a usable answer, the log warns that deadlocks are not found. */
const MOST_FAILURES = 4;
/** With fewer waits than this, ended ones are not searched for between two beats. */
const FIRST_SWEEP = 64;

/**
 * Finds deadlocks: callers that hold locks and wait for each other in a circle, in any processes. The callers of one
 * service that run in a lock scope and have waited for over a second write down, again and again, what they wait for,
 * and follow what others have written, from holder to holder. A caller that comes back to itself that way, and began to
 * wait after all the others on the way, is refused.
 *
 * Nobody else pays for it: a caller outside of a scope is not known here.
 */
export class DeadlockDetector {
  /** In the order of their arrival. Those that have ended stay until the next sweep. */
  private waits: NestedWait[] = [];
  /** The ids of those that have ended, and are to be removed from the journal. */
  private ended = new Set<string>();
  private sweepAt = FIRST_SWEEP;
  private timer: Timer | undefined;
  private readonly journal: WaitJournal | undefined;
  private readonly time: BackendTime | undefined;
  private beats = 0;
  private ids = 0;
  private beating = false;
  /** How many beats have failed since waits were last written down and followed. */
  private failures = 0;
  private warned = false;
  private closed = false;

  /**
   * @param backend undefined: deadlocks are not found
   * @param identify finds out whose owner this is, for the error
   * @param warn writes to the log
   */
  constructor(
    private readonly backend: WaitBackend | undefined,
    private readonly runtime: Runtime,
    private readonly clientId: string,
    private readonly identify: (owner: string) => Promise<HolderClient | undefined>,
    private readonly warn: (message: string) => void,
  ) {
    this.journal = backend && new WaitJournal(backend);
    this.time = backend && new BackendTime(backend, runtime);
  }

  /**
   * The caller runs in a scope, and has just begun to wait. A caller that can do without the lock is not blocked by its
   * holder.
   */
  add(waiter: LockWaiter, place: WaitingPlace): void {
    const scope = lockScopes.getStore();
    if (this.backend === undefined || this.closed || scope === undefined || waiter.settled) return;
    if (waiter.terms.tentative) return;
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
    if (isNeeded) this.timer = runtime.timer(BEAT, this.tick, long.length > 0 ? 'keep-alive' : undefined);
    else if (waits.length > 0) this.timer = runtime.timer(waits[0].since + LONG - now, this.tick);
    if (!isNeeded || this.beating) return;
    this.beating = true;
    this.beat(long)
      .catch((error) => this.failed(error))
      .finally(() => {
        this.beating = false;
      });
  };

  private async beat(long: readonly NestedWait[]): Promise<void> {
    await this.time?.date(long);
    await this.findHolders(long);
    const going = long.filter(({ goesOn }) => goesOn);
    for (const { waiter, id } of going) waiter.onSettled ??= () => this.removeSoon(id);
    await this.journal?.write(going);
    const now = this.runtime.monotonic();
    const followsAll = ++this.beats % 4 === 0;
    const isDue = ({ since, confirming }: NestedWait) => !confirming && (followsAll || now - since < OLD);
    const due = going.filter((wait) => wait.goesOn && isDue(wait));
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
        wait.holders = gate === undefined ? (await ask(wait.place.key)).slice(0, MOST_HOLDERS) : [gate];
      }),
    );
  }

  private async follow(waits: readonly NestedWait[]): Promise<void> {
    const reader = new WaitReader(this.backend as WaitBackend);
    await Promise.all(
      waits.map(async (wait) => {
        const cycle = await findCycle(reader, { id: wait.id, record: wait.record });
        if (cycle === undefined) return;
        wait.confirming = true;
        this.confirm(wait, cycle).catch(() => {}); // it is checked again after the next beat
      }),
    );
  }

  private async confirm(wait: NestedWait, cycle: readonly FoundWait[]): Promise<void> {
    const { waiter, place } = wait;
    const { backend, runtime, time } = this;
    const over = () => this.closed || cycle.some(({ id }) => this.hasEnded(id));
    try {
      const [confirmed, clients] = await Promise.all([
        confirmCycle(backend as WaitBackend, runtime, cycle, over, () => (time as BackendTime).now()),
        Promise.all(cycle.map((member) => this.identify(ownerOf(member)))),
      ]);
      if (confirmed && !over()) place.dismiss(waiter, deadlockError(cycle, clients));
    } finally {
      wait.confirming = false;
    }
  }

  /** Whether it is a wait of this service, and over. */
  private hasEnded(id: string): boolean {
    if (!id.startsWith(`${this.clientId}/`)) return false;
    return !this.waits.some((wait) => wait.id === id && !wait.waiter.settled);
  }

  /** All waits that end in this turn of the event loop are removed together. */
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
   * The next beat tries again. A Redis without memory refuses to store waits, while locks that are held are still
   * renewed.
   */
  private failed({ kind, message }: BackendError): void {
    this.failures++;
    const lasts = kind === 'denied' || this.failures >= MOST_FAILURES;
    if (!lasts || this.warned) return;
    this.warned = true;
    this.warn(`Deadlocks are not found: ${message}`);
  }

  /** Forgets waits that have ended. */
  private sweep(): void {
    this.waits = this.waits.filter(({ waiter }) => !waiter.settled);
    this.sweepAt = Math.max(FIRST_SWEEP, 2 * this.waits.length);
  }
}
