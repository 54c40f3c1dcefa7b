/** How many samples are kept. Old samples become wrong, because both clocks drift. */
const SAMPLES = 8;
/**
 * Deadlines are rounded up to multiples of this many ms, so that many calls share one formatted number. Formatting
 * costs as much as sending.
 */
const DEADLINE_STEP = 16;
/** After this many ms without a sample, the next call is accompanied by a `TIME` command for a new one. */
const STALE_AFTER = 30_000;

/**
 * The clock of one server, estimated from the monotonic clock of this process. A sample is the server's time minus the
 * local time just before the command was sent, so it is never too small. The smallest of the recent samples is the
 * best. A deadline that is computed with it is never too early, so no request is refused while its caller still waits.
 */
export class ServerClock {
  private samples: { readonly offset: number; readonly uncertainty: number }[] = [];
  private offset = Number.POSITIVE_INFINITY;
  private best = Number.POSITIVE_INFINITY;
  private sampledAt = 0;
  private connection: object | undefined;
  private deadlineText = '';
  private deadlineSteps = 0;

  /** Whether {@link deadline} can be computed. */
  get isKnown(): boolean {
    return this.samples.length > 0;
  }

  /** By how many ms the estimate may be too large: the round-trip time of the best sample. */
  get uncertainty(): number {
    return this.best;
  }

  isStale(now: number): boolean {
    return now - this.sampledAt > STALE_AFTER;
  }

  /**
   * Notes the server's time.
   *
   * @param time the server's, in ms
   * @param sentAt when the command was sent, on the monotonic clock
   * @param receivedAt when its answer came
   * @param connection the connection of the command: another connection may lead to another server
   */
  sample(time: number, sentAt: number, receivedAt: number, connection: object | undefined): void {
    if (connection !== this.connection) this.forget();
    this.connection = connection;
    this.sampledAt = sentAt;
    this.samples.push({ offset: time - sentAt, uncertainty: receivedAt - sentAt });
    if (this.samples.length > SAMPLES) this.samples.shift();
    const best = this.samples.reduce((least, sample) => (sample.offset < least.offset ? sample : least));
    this.offset = best.offset;
    this.best = best.uncertainty;
  }

  /** Drops all samples, because the server's clock was changed, or because another server may answer from now on. */
  forget(): void {
    this.samples = [];
    this.offset = this.best = Number.POSITIVE_INFINITY;
    this.connection = undefined;
  }

  /** The server time in ms at a moment of the monotonic clock, rounded up, as an argument of scripts. */
  deadline(moment: number): string {
    const steps = Math.ceil((moment + this.offset) / DEADLINE_STEP);
    if (steps !== this.deadlineSteps) {
      this.deadlineSteps = steps;
      this.deadlineText = String(steps * DEADLINE_STEP);
    }
    return this.deadlineText;
  }

  /** The server time in ms at a moment of the monotonic clock, or a little earlier, as an argument of scripts. */
  earliest(moment: number): string {
    return String(Math.floor(moment + this.offset - this.uncertainty));
  }
}
