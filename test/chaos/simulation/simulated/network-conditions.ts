import type { SeededRandom } from '../../../support/seeded-random.js';

/** What may happen to a command between a process and the server. */
export type Fate =
  | 'answered'
  /** It never left, and the caller knows. */
  | 'refused'
  /** It never arrived, and nobody knows. */
  | 'lost'
  /** It was executed, and its answer got lost. */
  | 'unanswered'
  /** It was executed, its answer lost with the connection, and the client sent it again. */
  | 'resent'
  /** It takes very long, and the client sent a second copy of it, which was answered first. */
  | 'twice'
  /** It takes very long, perhaps longer than the caller waits for its answer. */
  | 'late'
  /** It is held up on a connection that is replaced: what is sent after it arrives before it. */
  | 'overtaken'
  /** It is executed, and its answer takes almost as long as the caller waits for it. */
  | 'answeredLate';

/** What the network is like. Likelihoods are those of one command, or of one message. */
export interface NetworkConditions {
  /** Milliseconds one way. */
  readonly latency: readonly [least: number, most: number];
  /** How likely it is that something takes ten times as long. */
  readonly slow: number;
  readonly fates: Readonly<Partial<Record<Exclude<Fate, 'answered'>, number>>>;
  /** How likely it is that a message of a release is not heard. */
  readonly unheard: number;
}

/** The network's chance. */
export class Network {
  /** Nothing gets lost any more. */
  calm = false;

  constructor(
    private readonly conditions: NetworkConditions,
    private readonly chance: SeededRandom,
  ) {}

  /** How long something is under way. */
  delay(): number {
    const { latency, slow } = this.conditions;
    const [least, most] = latency;
    if (this.chance.chance(0.1)) return least;
    return this.chance.between(least, most) * (this.chance.chance(slow) ? 10 : 1);
  }

  fate(): Fate {
    if (this.calm) return 'answered';
    let drawn = this.chance.next();
    for (const [fate, likelihood] of Object.entries(this.conditions.fates)) {
      drawn -= likelihood;
      if (drawn < 0) return fate as Fate;
    }
    return 'answered';
  }

  hears(): boolean {
    return this.calm || !this.chance.chance(this.conditions.unheard);
  }

  /** A moment between now and `most` milliseconds from now. */
  within(most: number): number {
    return this.chance.between(0, most);
  }
}
