import { type Linked, LinkedQueue } from '../collections/linked-queue.js';

/** An owner whose release has no answer yet. */
export interface Departing extends Linked<Departing> {
  readonly key: string;
  readonly owner: string;
  /** A request is under way; false between two repetitions. */
  readonly underWay: boolean;
  /** Called when the next request has been answered or given up. */
  whenAnswered: readonly (() => void)[] | undefined;
}

/**
 * The releases of one engine that have no answer yet. Until it arrives, the backend may still name an owner that has
 * left. Questions about such a lock therefore wait for the answer, and a busy lock is asked for once more.
 */
export class UnsettledReleases {
  private readonly releases = new LinkedQueue<Departing>();

  begin(release: Departing): void {
    this.releases.push(release);
  }

  /** Called when a request was answered or given up. The release may be repeated. */
  answered(release: Departing): void {
    const listeners = release.whenAnswered;
    if (listeners === undefined) return;
    release.whenAnswered = undefined;
    for (const listener of listeners) listener();
  }

  /** Called when the release is settled, or is not sent after all. */
  end(release: Departing): void {
    this.releases.remove(release);
    this.answered(release);
  }

  /** Calls back at the next answer to the release of this owner. False: its release is settled, or never began. */
  onAnswer(owner: string | undefined, callback: () => void): boolean {
    if (owner === undefined || this.releases.length === 0) return false;
    for (const release of this.releases) {
      if (release.owner !== owner) continue;
      release.whenAnswered = [...(release.whenAnswered ?? []), callback];
      return true;
    }
    return false;
  }

  /** Like {@link onAnswer}, as a promise; undefined: the release of this owner is settled, or never began. */
  nextAnswer(owner: string | undefined): Promise<void> | undefined {
    let settle!: () => void;
    const answer = new Promise<void>((resolve) => {
      settle = resolve;
    });
    return this.onAnswer(owner, settle) ? answer : undefined;
  }

  /** Settles when this lock's releases that are under way have been answered; undefined: there are none. */
  answersFor(key: string): Promise<unknown> | undefined {
    if (this.releases.length === 0) return undefined;
    const answers = [...this.releases]
      .filter((release) => release.key === key && release.underWay)
      .map(({ owner }) => this.nextAnswer(owner));
    return answers.length === 0 ? undefined : Promise.all(answers);
  }
}
