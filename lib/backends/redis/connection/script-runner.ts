import type { ConnectionContext } from '../links/connection-context.js';
import type { Topology } from '../links/topology.js';
import { silenceAdvice } from './connection-advice.js';
import { EndedError, ExpiredError } from './redis-errors.js';
import { ReplicaExit } from './replica-exit.js';
import { ScriptCall, type ScriptRequest } from './script-call.js';
import { SecondTry } from './second-try.js';
import type { ServerClock } from './server-clock.js';
import type { ServerClocks } from './server-clocks.js';
import type { SilentConnections } from './silent-connections.js';

/**
 * Runs scripts. Scripts that acquire a lock are sent with a deadline in server time. After that deadline they have no
 * effect, and they may be sent once more: see {@link SecondTry}.
 */
export class ScriptRunner {
  private readonly replicas: ReplicaExit;
  private readonly secondTry: SecondTry;

  constructor(
    private readonly topology: Topology,
    private readonly context: ConnectionContext,
    private readonly clocks: ServerClocks,
    private readonly silent: SilentConnections,
  ) {
    this.replicas = new ReplicaExit(topology, context);
    this.secondTry = new SecondTry(topology, context, this.replicas);
  }

  /** Runs a script, once the clock of its server is known. */
  run(request: ScriptRequest): ScriptCall {
    const call = new ScriptCall(this.topology, request, this.clocks);
    this.start(call, request);
    return call;
  }

  private start(call: ScriptCall, request: ScriptRequest): void {
    const clock = this.clocks.of(request.keys);
    if (clock.isKnown || request.keys.length === 0) this.send(call, request, clock);
    else
      this.clocks.synchronize(request.keys).then(
        (synchronized) => this.send(call, request, synchronized),
        (error) => this.fail(call, request, error),
      );
  }

  /** Records the server time that a script returned. */
  sampleClock(call: ScriptCall, keys: readonly string[], time: number): void {
    this.clocks.of(keys).sample(time, call.writtenAt, this.context.runtime.monotonic(), call.socket);
  }

  /**
   * Called when no answer has arrived in time.
   *
   * @returns whether the caller waits longer, until the deadline that {@link ScriptRequest.extend} got
   */
  overdue(call: ScriptCall, request: ScriptRequest): boolean {
    if (!this.secondTry.followsSilence(call, request)) return false;
    // The second try begins when the connection has been destroyed.
    this.silent.check(() => call.latest);
    return true;
  }

  /** Leaves a server that said READONLY. @returns whether later commands are written on another connection */
  leaveReplica(call: ScriptCall): boolean {
    return this.replicas.leave(call.socket);
  }

  /** What to do if the connection of an unanswered script is dead, and not ours to replace. */
  silenceAdvice(call: ScriptCall): string | undefined {
    return call.silenceAdvice ?? this.clockSilence();
  }

  /** Called when the caller of this script has stopped waiting because the answer did not arrive in time. */
  giveUp(call: ScriptCall): void {
    call.abandon();
    const unanswered = call.latest === undefined ? this.clocks.pendingCommands : [call.latest];
    for (const command of unanswered) this.silent.check(() => command);
  }

  private clockSilence(): string | undefined {
    for (const command of this.clocks.pendingCommands) {
      const advice = silenceAdvice(this.topology, command);
      if (advice !== undefined) return advice;
    }
    return undefined;
  }

  private send(call: ScriptCall, request: ScriptRequest, clock: ServerClock): void {
    call.send(
      this.timeFor(request, clock),
      (reply) => {
        if (isExpired(reply)) this.expired(call, request, clock, Number(reply[1]));
        else request.done(reply);
      },
      (error) => this.fail(call, request, error),
    );
    if (clock.isStale(call.writtenAt)) this.clocks.refresh(request.keys);
  }

  /** The time that the script receives as its first argument. */
  private timeFor({ deadline, moment }: ScriptRequest, clock: ServerClock): string | undefined {
    if (deadline !== undefined)
      return this.context.strictDeadlines ? clock.earliest(deadline) : clock.deadline(deadline);
    return moment === undefined ? undefined : clock.earliest(moment);
  }

  /**
   * Handles a script that did nothing because its deadline had passed. This happens when the server's clock was changed
   * or this machine was suspended. The script is sent once more.
   */
  private expired(call: ScriptCall, request: ScriptRequest, clock: ServerClock, time: number): void {
    const now = this.context.runtime.monotonic();
    // After a slow round trip, the old samples may well be right, and the deadline may really have passed.
    if (now - call.writtenAt < this.context.commandTimeout / 2) clock.forget();
    clock.sample(time, call.writtenAt, now, call.socket);
    // The client has sent it again after its connection broke.
    if (call.resent && now >= (request.deadline as number)) this.secondTry.extend(call, request);
    if (call.expirations++ > 0 || now >= (request.deadline as number)) request.fail(new ExpiredError());
    else this.send(call, request, clock);
  }

  private fail(call: ScriptCall, request: ScriptRequest, error: unknown): void {
    if (this.secondTry.followsError(call, request, error)) return this.start(call, request);
    // When a command fails because of the client's own timeout, it may remain in the client's queue and be executed
    // after a reconnect.
    call.abandon();
    const { topology } = this;
    if (!topology.ended) return request.fail(error);
    const ended = topology.endedError();
    request.fail(new EndedError(ended.message, { cause: ended.cause }));
  }
}

function isExpired(reply: unknown): reply is readonly ['expired', time: number] {
  return Array.isArray(reply) && reply[0] === 'expired';
}
