/** How an ask for a share stands. */
export type ShareFate = 'waits' | 'holds' | 'released';

interface Share {
  readonly parent: Share | undefined;
  fate: ShareFate;
  /** Who waits at its gate, and who is inside, with all that is below. */
  readonly waiting: Share[];
  inside: Share | undefined;
}

/**
 * Shares of one lock that are asked for inside of each other, in however many scopes of each: the children of a share go in one after
 * the other, and each stays in until it and all below it have ended.
 */
export class ShareModel {
  readonly shares: Share[] = [];

  get fates(): readonly ShareFate[] {
    return this.shares.map(({ fate }) => fate);
  }

  /** The first share, or the child of one that holds the lock. */
  ask(parent: number | undefined): void {
    const above = parent === undefined ? undefined : this.shares[parent];
    const share: Share = { parent: above, fate: 'holds', waiting: [], inside: undefined };
    this.shares.push(share);
    if (above === undefined) return;
    if (above.inside === undefined) {
      above.inside = share;
      return;
    }
    share.fate = 'waits';
    above.waiting.push(share);
  }

  release(id: number): void {
    this.shares[id].fate = 'released';
    this.leave(this.shares[id]);
  }

  /** Those that hold it, and that nobody waits for at their gate: what waits there would be on its own. */
  get free(): readonly number[] {
    return this.ids(({ fate, waiting }) => fate === 'holds' && waiting.length === 0);
  }

  get holders(): readonly number[] {
    return this.ids(({ fate }) => fate === 'holds');
  }

  private leave(share: Share): void {
    const { parent, fate, inside } = share;
    if (parent === undefined || fate !== 'released' || inside !== undefined) return;
    parent.inside = parent.waiting.shift();
    if (parent.inside !== undefined) parent.inside.fate = 'holds';
    else this.leave(parent);
  }

  private ids(is: (share: Share) => boolean): readonly number[] {
    return this.shares.flatMap((share, id) => (is(share) ? [id] : []));
  }
}
