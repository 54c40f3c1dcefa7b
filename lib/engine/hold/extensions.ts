const NONE: readonly number[] = [];

/** The requests of `extend()` that are unanswered, as the lease times that they set. */
export class Extensions<Thing> {
  private readonly unanswered = new Map<Thing, readonly number[]>();

  begin(thing: Thing, leaseTime: number): void {
    this.unanswered.set(thing, [...this.of(thing), leaseTime]);
  }

  end(thing: Thing, leaseTime: number): void {
    const all = this.of(thing);
    const index = all.indexOf(leaseTime);
    const others = all.filter((_, i) => i !== index);
    if (others.length > 0) this.unanswered.set(thing, others);
    else this.unanswered.delete(thing);
  }

  /** The lease time that a renewal sets. One that overtakes an extension must not cut it short. */
  longest(thing: Thing, leaseTime: number): number {
    let longest = leaseTime;
    for (const extension of this.of(thing)) longest = Math.max(longest, extension);
    return longest;
  }

  /** Whether an answered extension certainly lasts, because no shorter one may be executed after it. */
  isShortest(thing: Thing, leaseTime: number): boolean {
    return this.of(thing).every((other) => other >= leaseTime);
  }

  private of(thing: Thing): readonly number[] {
    return this.unanswered.size === 0 ? NONE : (this.unanswered.get(thing) ?? NONE);
  }
}
