import { lockScopes } from '../../../lib/engine/scope/lock-scope.js';
import { countDown } from './errands/latch-errands.js';
import { type Gate, POOL, SEATS, type SharedObjects } from './errands/shared-objects.js';
import type { Member } from './member.js';

const BEAT = 100;
/** A latch of this age gets the steps that nobody has taken over, in milliseconds. */
const SOON = 200;
/** A latch of this age whose steps were lost with their process is deleted, in milliseconds. */
const LATE = 4_000;

/**
 * Makes sure that there are permits, and that no latch stays closed because nobody took over its steps, or because
 * those processes died.
 */
export class Caretaker {
  private readonly set = new Set<string>();
  private readonly ended = new Map<Gate, number>();

  /** @param forgetful whether the server can lose what was set */
  constructor(
    private readonly shared: SharedObjects,
    private readonly forgetful: boolean,
  ) {}

  get interval(): number {
    return BEAT;
  }

  /** One round, with requests of this process. */
  round(member: Member, now: number): void {
    lockScopes.run(undefined, () => {
      for (const [name, permits] of this.shared.permits) this.supply(member, name, permits);
      for (const gate of this.shared.gates) this.finish(member, gate, now - gate.since);
    });
  }

  private supply({ locks }: Member, name: string, permits: number): void {
    if (this.set.has(name) && !this.forgetful) return;
    const semaphore = name === POOL ? locks.getSemaphore(POOL) : locks.getPermitExpirableSemaphore(SEATS);
    semaphore.trySetPermits(permits).then(
      () => this.set.add(name),
      () => {},
    );
  }

  private finish(member: Member, gate: Gate, age: number): void {
    const { permits, locks } = member;
    if (gate.set && age > SOON) while (gate.claimed < gate.count) void countDown(member, gate);
    const doubtful = this.shared.mortal || this.forgetful;
    if (!doubtful || gate.ended || age < (this.ended.get(gate) ?? LATE)) return;
    this.ended.set(gate, age + 1_000);
    const latch = locks.getCountDownLatch(gate.name);
    void permits
      .step(gate.name, 'ending', 0, () => latch.delete(), 'ended')
      .then((done) => {
        gate.ended ||= done;
      });
  }
}
