import { BackendError } from '../../lock-backend.js';
import type { ConnectionContext } from '../links/connection-context.js';
import type { Topology } from '../links/topology.js';
import { silenceAdvice } from './connection-advice.js';
import { EndedError, ExpiredError, errorCode, messageOf } from './redis-errors.js';
import { ReplicaExit } from './replica-exit.js';
import { ScriptCall, type ScriptRequest } from './script-call.js';
import type { ServerClock } from './server-clock.js';
import type { ServerClocks } from './server-clocks.js';
import type { SilentConnections } from './silent-connections.js';

/** How long a second try may take that begins when the time of the first one is over, in milliseconds. */
const SECOND_TRY = 1_000;

/**
 * Runs scripts. Scripts that acquire a lock are sent with a deadline in server time. After that deadline they have no
 * effect.
 *
 * Such a script is sent once more, on another connection, if its first one broke, has gone silent, or led to a replica:
 * the caller may be one that tries only once, and a connection that a firewall has dropped says nothing about the lock.
 * That is safe, because these scripts may be executed twice.
 */
export class ScriptRunner {
  private readonly replicas: ReplicaExit;

  constructor(
    private readonly topology: Topology,
    private readonly context: ConnectionContext,
    private readonly clocks: ServerClocks,
    private readonly silent: SilentConnections,
  ) {
    this.replicas = new ReplicaExit(topology, context);
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
    const { topology, silent } = this;
    if (!topology.replacesSilentConnections || !call.isSilent) return false;
    if (!this.extend(call, request)) return false;
    // The second try begins when the connection has been destroyed.
    silent.check(() => call.latest);
    return true;
  }

  /** Leaves a server that said READONLY. @returns whether later commands are written on another connection */
  leaveReplica(call: ScriptCall): boolean {
    return this.replicas.leave(call.socket);
  }

  /** What to do if the connection of an unanswered script is dead, and not ours to replace. */
  silenceAdvice(call: ScriptCall): string | undefined {
    return call.silenceAdvice ?? silenceAdvice(this.topology, this.clocks.pendingCommand);
  }

  /** Called when the caller of this script has stopped waiting because the answer did not arrive in time. */
  giveUp(call: ScriptCall): void {
    call.abandon();
    this.silent.check(() => call.latest ?? this.clocks.pendingCommand);
  }

  private send(call: ScriptCall, request: ScriptRequest, clock: ServerClock): void {
    call.send(
      timeFor(request, clock),
      (reply) => {
        if (isExpired(reply)) this.expired(call, request, clock, Number(reply[1]));
        else request.done(reply);
      },
      (error) => this.fail(call, request, error),
    );
    if (clock.isStale(call.writtenAt)) this.clocks.refresh(request.keys);
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
    if (call.resent && now >= (request.deadline as number)) this.extend(call, request);
    if (call.expirations++ > 0 || now >= (request.deadline as number)) request.fail(new ExpiredError());
    else this.send(call, request, clock);
  }

  private extend(call: ScriptCall, request: ScriptRequest): boolean {
    if (call.isExtended || !this.mayRepeat(call, request)) return false;
    call.isExtended = true;
    request.extend(this.secondDeadline);
    return true;
  }

  private mayRepeat(call: ScriptCall, request: ScriptRequest): boolean {
    return request.repeatable && !call.isRepeated && !this.topology.ended;
  }

  private get secondDeadline(): number {
    const { runtime, commandTimeout } = this.context;
    return runtime.monotonic() + Math.min(SECOND_TRY, commandTimeout);
  }

  private fail(call: ScriptCall, request: ScriptRequest, error: unknown): void {
    const { topology } = this;
    const isReplica = errorCode(messageOf(error)) === 'READONLY';
    const isElsewhere = isReplica ? this.leaveReplica(call) : isLost(call, error);
    if (isElsewhere && this.mayRepeat(call, request)) {
      call.repeat(isReplica && !call.resent);
      request.extend(this.secondDeadline);
      return this.start(call, request);
    }
    // When a command fails because of the client's own timeout, it may remain in the client's queue and be executed
    // after a reconnect.
    call.abandon();
    if (!topology.ended) return request.fail(error);
    const ended = topology.endedError();
    request.fail(new EndedError(ended.message, { cause: ended.cause }));
  }
}

/** Whether the connection broke before an answer arrived. */
function isLost(call: ScriptCall, error: unknown): boolean {
  if (call.isAnswer(error) || error instanceof BackendError || error instanceof ExpiredError) return false;
  return errorCode(messageOf(error)) === undefined;
}

/** The time that the script receives as its first argument. */
function timeFor({ deadline, moment }: ScriptRequest, clock: ServerClock): string | undefined {
  if (deadline !== undefined) return clock.deadline(deadline);
  return moment === undefined ? undefined : clock.earliest(moment);
}

function isExpired(reply: unknown): reply is readonly ['expired', time: number] {
  return Array.isArray(reply) && reply[0] === 'expired';
}
