/** Samples that are remembered: both clocks drift, and old ones go out of date. */
const SAMPLES = 8;
/** Limits are rounded up to multiples of this many ms, so that many calls share one text: to write a number costs as much as to send it. */
const GRAIN = 16;
/** A clock that nobody has compared with the server's for so many ms is compared again, beside the next call. */
const STALE = 30_000;

/**
 * What the clock of one server shows, estimated from the monotonic clock of this process. A sample is the server's time less the
 * moment before the question was sent, so it is never too small; the least of the last ones is the best. A limit that is made
 * with it is never too early: no request is refused that its caller still waits for.
 */
export class ServerClock {
  private samples: { readonly offset: number; readonly doubt: number }[] = [];
  private offset = Number.POSITIVE_INFINITY;
  /** By how many ms the estimate may be too large: the answer took so long that gave the best sample. */
  doubt = Number.POSITIVE_INFINITY;
  private sampledAt = 0;
  private connection: object | undefined;
  private limitText = '';
  private limitGrain = 0;

  /** Whether {@link limit} can be asked. */
  get known(): boolean {
    return this.samples.length > 0;
  }

  isStale(now: number): boolean {
    return now - this.sampledAt > STALE;
  }

  /**
   * Notes what the server answered.
   *
   * @param time the server's, in ms
   * @param sentAt when the question was sent, on the monotonic clock
   * @param heardAt when its answer came
   * @param connection where it was sent: samples of another connection may be another server's
   */
  sample(time: number, sentAt: number, heardAt: number, connection: object | undefined): void {
    if (connection !== this.connection) this.forget();
    this.connection = connection;
    this.sampledAt = sentAt;
    this.samples.push({ offset: time - sentAt, doubt: heardAt - sentAt });
    if (this.samples.length > SAMPLES) this.samples.shift();
    const best = this.samples.reduce((least, sample) => (sample.offset < least.offset ? sample : least));
    this.offset = best.offset;
    this.doubt = best.doubt;
  }

  /** The server was asked anew, or is another one. */
  forget(): void {
    this.samples = [];
    this.offset = this.doubt = Number.POSITIVE_INFINITY;
    this.connection = undefined;
  }

  /** The server's time at a moment of the monotonic clock, as the scripts take it, in ms. */
  limit(moment: number): string {
    const grain = Math.ceil((moment + this.offset) / GRAIN);
    if (grain !== this.limitGrain) {
      this.limitGrain = grain;
      this.limitText = String(grain * GRAIN);
    }
    return this.limitText;
  }
}
