import type { ConnectionContext } from '../links/connection-context.js';
import type { Topology } from '../links/topology.js';
import { EndedError, ExpiredError, errorCode, messageOf } from './redis-errors.js';
import { ScriptCall, type ScriptRequest } from './script-call.js';
import type { ServerClock } from './server-clock.js';
import type { ServerClocks } from './server-clocks.js';
import type { SilentConnections } from './silent-connections.js';

/**
 * Runs scripts. Scripts that acquire a lock are sent with a deadline in server time. After that deadline they have no
 * effect.
 */
export class ScriptRunner {
  constructor(
    private readonly topology: Topology,
    private readonly context: ConnectionContext,
    private readonly clocks: ServerClocks,
    private readonly silent: SilentConnections,
  ) {}

  /** Runs a script, once the clock of its server is known. */
  run(request: ScriptRequest): ScriptCall {
    const call = new ScriptCall(this.topology, request);
    const clock = this.clocks.of(request.keys);
    if (clock.isKnown || request.keys.length === 0) this.send(call, request, clock);
    else
      this.clocks.synchronize(request.keys).then(
        (synchronized) => this.send(call, request, synchronized),
        (error) => this.fail(call, request, error),
      );
    return call;
  }

  /** Records the server time that a script returned. */
  sampleClock(call: ScriptCall, keys: readonly string[], time: number): void {
    this.clocks.of(keys).sample(time, call.writtenAt, this.context.runtime.monotonic(), call.socket);
  }

  /** Called when the caller of this script has stopped waiting because the answer did not arrive in time. */
  giveUp(call: ScriptCall): void {
    call.abandon();
    this.silent.check(() => call.latest ?? this.clocks.pendingCommand);
  }

  private send(call: ScriptCall, request: ScriptRequest, clock: ServerClock): void {
    const { deadline } = request;
    call.send(
      deadline === undefined ? undefined : clock.deadline(deadline),
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
    if (call.sends > 1 || now >= (request.deadline as number)) request.fail(new ExpiredError());
    else this.send(call, request, clock);
  }

  private fail(call: ScriptCall, request: ScriptRequest, error: unknown): void {
    const { topology } = this;
    // When a command fails because of the client's own timeout, it may remain in the client's queue and be executed
    // after a reconnect.
    call.abandon();
    if (errorCode(messageOf(error)) === 'READONLY') topology.leaveReplica();
    if (!topology.ended) return request.fail(error);
    const ended = topology.endedError();
    request.fail(new EndedError(ended.message, { cause: ended.cause }));
  }
}

function isExpired(reply: unknown): reply is readonly ['expired', time: number] {
  return Array.isArray(reply) && reply[0] === 'expired';
}
