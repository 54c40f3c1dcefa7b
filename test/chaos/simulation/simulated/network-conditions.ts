import type { SeededRandom } from '../../../support/seeded-random.js';

/** What happens to a connection when a command is written on it. What follows on the connection shares its fate. */
export type Fate =
  | 'answered'
  /** It breaks before that, and the command fails. */
  | 'refused'
  /** The command never arrives, and perhaps nobody is told. */
  | 'lost'
  /** The command is executed, but its answer never arrives, and perhaps nobody is told. */
  | 'unanswered'
  /** The same, and the client is soon told that the connection broke. One like ioredis sends the command again. */
  | 'resent'
  /** The command takes very long, perhaps longer than the caller waits for its answer. */
  | 'late'
  /** The same, and the client is soon told that the connection broke. What it sends next arrives earlier. */
  | 'twice'
  /** The same, and the client is told later, or not at all. */
  | 'overtaken'
  /** The command is executed, and its answer takes almost as long as the caller waits for it. */
  | 'answeredLate';

/** The properties of the network. Probabilities apply to each command or message. */
export interface NetworkConditions {
  /** In milliseconds, one way. */
  readonly latency: readonly [least: number, most: number];
  /** The probability that something takes ten times as long. */
  readonly slow: number;
  readonly fates: Readonly<Partial<Record<Exclude<Fate, 'answered'>, number>>>;
  /** The probability that a message is lost, and all that follow on its connection. */
  readonly unheard: number;
}

/** The random behaviour of the network. */
export class Network {
  /** From now on, nothing is lost, and nothing takes ten times as long. */
  calm = false;

  constructor(
    private readonly conditions: NetworkConditions,
    private readonly chance: SeededRandom,
  ) {}

  /** How long something takes to arrive, in milliseconds. */
  delay(): number {
    const { latency, slow } = this.conditions;
    const [least, most] = latency;
    if (this.chance.chance(0.1)) return least;
    return this.chance.between(least, most) * (!this.calm && this.chance.chance(slow) ? 10 : 1);
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

  /** Whether a message takes much longer than others. */
  isLate(): boolean {
    return this.isStrange(0.05);
  }

  /** Whether a stranger reacts to something that it should not see. */
  isHeardByStranger(): boolean {
    return this.isStrange(0.1);
  }

  /** A moment between now and `most` milliseconds from now. */
  within(most: number): number {
    return this.chance.between(0, most);
  }

  private isStrange(likelihood: number): boolean {
    const isReliable = this.calm || Object.keys(this.conditions.fates).length === 0;
    return !isReliable && this.chance.chance(likelihood);
  }
}
