import { BackendError, type LockBackend } from '../../../../lib/backends/lock-backend.js';
import type { Timer } from '../../../../lib/backends/runtime.js';
import type { Copy, RequestTrace } from './link-trace.js';
import type { Fate } from './network-conditions.js';
import type { SimulatedLink } from './simulated-link.js';

/** The answer to a command that was sent twice. */
export type WhenResent<T> = (reply: T, validUntil: number | undefined) => T | BackendError;

/** One command, its way to the server, and the way back of its answer. */
export class SimulatedCommand<T> {
  readonly answer: Promise<T>;
  private readonly connection: number;
  private readonly timeout: Timer;
  private resolve!: (reply: T) => void;
  private reject!: (error: Error) => void;
  private fate: Fate;

  constructor(
    private readonly link: SimulatedLink,
    private readonly line: string,
    private readonly execute: (backend: LockBackend) => Promise<T>,
    private readonly whenResent: WhenResent<T>,
    /** The time of the server's clock after which the command is not executed. */
    private readonly validUntil: number | undefined,
    private readonly trace?: RequestTrace,
  ) {
    this.answer = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    const { commandTimeout } = link.settings;
    this.connection = link.connection;
    this.timeout = link.process.timer(commandTimeout, () =>
      this.fail(`no answer within ${commandTimeout} ms`, 'unknown'),
    );
    link.open.add(this as SimulatedCommand<unknown>);
    if (trace !== undefined) {
      this.answer.then(
        (reply) => trace.answered(reply),
        ({ outcome }: BackendError) => trace.failed(outcome === 'refused' ? 'refused' : 'unknown'),
      );
    }
    this.fate = link.network.fate();
    if (this.fate === 'refused') link.process.receive(0, () => this.fail('the connection is closed', 'refused'));
    else this.depart();
  }

  fail(message: string, outcome: BackendError['outcome']): void {
    const { validUntil } = this;
    if (this.settle()) this.reject(new BackendError(message, 'unavailable', outcome, { validUntil }));
  }

  /** Called when its connection is lost. Nobody knows whether the command was executed. */
  disconnected(): void {
    this.link.process.receive(this.link.network.within(5), () => this.fail('the connection was closed', 'unknown'));
  }

  private depart(): void {
    const { link } = this;
    if (this.fate === 'twice') {
      link.time.after(link.network.within(2 * link.settings.commandTimeout), () => this.arriveUnnoticed());
      return this.sendAgain();
    }
    if (this.fate === 'overtaken') {
      link.time.after(link.network.within(3 * link.settings.commandTimeout), () => this.arriveUnnoticed());
      return this.breakOff();
    }
    if (this.fate === 'late') link.stall(this.line, link.network.within(2 * link.settings.commandTimeout));
    link.time.after(link.travel(this.line), () => this.arrive());
  }

  private arrive(): void {
    const { time, server, isCut, afterCut } = this.link;
    if (this.connection !== this.link.connection && !this.isResent) return this.trace?.lost(1);
    if (isCut) {
      if (afterCut !== undefined) time.at(afterCut, () => this.arrive());
      else this.trace?.lost(1);
      return;
    }
    if (server.attentiveAt > time.now) return time.at(server.attentiveAt, () => this.arrive());
    if (server.isDown || this.fate === 'lost') this.trace?.lost(1);
    if (server.isDown) return this.disconnected();
    if (this.fate === 'lost') return this.breakOff();
    void this.run();
  }

  private async run(): Promise<void> {
    let reply: T;
    if (this.isExpired) {
      this.trace?.late(1);
      return this.travelBack(() => this.fail('it came after its time', 'refused'));
    }
    try {
      reply = await this.perform(1);
    } catch (error) {
      return this.travelBack(() => this.settle() && this.reject(error as Error));
    }
    if (this.fate === 'unanswered') return this.breakOff();
    if (this.fate === 'resent') return this.sendAgain();
    if (this.fate === 'answeredLate')
      this.link.stall(this.answers, this.link.network.within(this.link.settings.commandTimeout));
    this.travelBack(() => this.settle() && this.resolve(reply));
  }

  private async perform(copy: Copy): Promise<T> {
    const reply = await this.execute(this.link.backend);
    this.trace?.executed(reply, copy);
    return reply;
  }

  /** Some callers are notified at once that the connection broke. Others notice nothing until their time-out. */
  private breakOff(): void {
    const { network, settings, process } = this.link;
    const delay = network.within(2 * settings.commandTimeout);
    if (delay < settings.commandTimeout)
      process.receive(delay, () => this.fail('the connection was closed', 'unknown'));
  }

  /** Executes a command for whose answer nobody waits: the first of two copies, or one whose connection is lost. */
  private arriveUnnoticed(): void {
    const { link } = this;
    if (link.server.isDown) this.trace?.lost(1);
    else if (this.isExpired) this.trace?.late(1);
    else this.perform(1).catch(() => {});
  }

  private sendAgain(): void {
    const { link, whenResent } = this;
    link.time.after(link.network.within(50), () => {
      if (link.process.dead || link.isCut || link.server.isDown) return this.breakOff();
      this.trace?.resent();
      if (this.isExpired) {
        this.trace?.late(2);
        return this.travelBack(() => this.fail('it came after its time', 'unknown'));
      }
      void this.perform(2).then(
        (reply) =>
          this.travelBack(() => {
            const answer = whenResent(reply, this.validUntil);
            if (!this.settle()) return;
            if (answer instanceof BackendError) this.reject(answer);
            else this.resolve(answer);
          }),
        (error) => this.travelBack(() => this.settle() && this.reject(error)),
      );
    });
  }

  private travelBack(arrived: () => void): void {
    const { link } = this;
    if (this.connection !== link.connection && !this.isResent) return;
    link.process.receive(link.travel(this.answers), () => {
      if (this.connection !== link.connection && !this.isResent) return;
      if (!link.isCut) return arrived();
      const { afterCut } = link;
      if (afterCut !== undefined) link.process.receive(afterCut - link.time.now, arrived);
    });
  }

  private get isResent(): boolean {
    return this.fate === 'resent' || this.fate === 'twice';
  }

  private get isExpired(): boolean {
    return this.validUntil !== undefined && this.link.server.wall() > this.validUntil;
  }

  /** The line on which its answers travel. */
  private get answers(): string {
    return `answers of ${this.line}`;
  }

  private settle(): boolean {
    if (!this.link.open.delete(this as SimulatedCommand<unknown>)) return false;
    this.timeout.cancel();
    return true;
  }
}
