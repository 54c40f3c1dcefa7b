/** The state of a request for a share. */
export type ShareFate = 'waits' | 'holds' | 'released';

interface Share {
  readonly parent: Share | undefined;
  fate: ShareFate;
  /** The children that wait at its gate, and the one inside, with everything below it. */
  readonly waiting: Share[];
  inside: Share | undefined;
}

/**
 * A model of shares of one lock that are requested inside of each other, in any number of scopes. The children of a
 * share enter one after another, and each of them stays inside until it and everything below it have ended.
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

  /**
   * The shares that hold the lock, and at whose gates nobody waits. A child that waits when its parent ends would
   * acquire the lock by itself.
   */
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
