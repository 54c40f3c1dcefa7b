import type { Client } from '../client/client.js';
import type { ConnectionContext } from '../client/connection-context.js';
import type { ClientLifecycle } from './client-lifecycle.js';
import { ExpiredError } from './redis-errors.js';
import { ScriptCall, type ScriptRequest } from './script-call.js';
import type { ServerClock } from './server-clock.js';
import type { ServerClocks } from './server-clocks.js';
import type { SocketTimeout } from './socket-timeout.js';

/** Runs scripts, and tells those that take something the server time after which they must do nothing. */
export class ScriptRunner {
  constructor(
    private readonly client: Client,
    private readonly context: ConnectionContext,
    private readonly clocks: ServerClocks,
    private readonly lifecycle: ClientLifecycle,
    private readonly socketTimeout: SocketTimeout,
  ) {}

  /** Runs a script, once the clock of its server is known. */
  run(request: ScriptRequest): ScriptCall {
    const call = new ScriptCall(this.client, request);
    const clock = this.clocks.of(request.keys);
    if (clock.isKnown || request.keys.length === 0) this.send(call, request, clock);
    else
      this.clocks.synchronize(request.keys).then(
        (synchronized) => this.send(call, request, synchronized),
        (error) => this.fail(call, request, error),
      );
    return call;
  }

  /** Notes the server time that a script returned. */
  sampleClock(call: ScriptCall, keys: readonly string[], time: number): void {
    this.clocks.of(keys).sample(time, call.writtenAt, this.context.runtime.monotonic(), call.socket);
  }

  /** The caller of this script got no answer in time and has left. */
  giveUp(call: ScriptCall): void {
    call.abandon();
    this.socketTimeout.check(() => call.latest ?? this.clocks.pendingCommand);
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

  /** The server refused the script for its deadline: its clock was set, or this machine slept. The script is sent once more. */
  private expired(call: ScriptCall, request: ScriptRequest, clock: ServerClock, time: number): void {
    const now = this.context.runtime.monotonic();
    // After a slow round trip the old samples may well be right, and the deadline really over.
    if (now - call.writtenAt < this.context.commandTimeout / 2) clock.forget();
    clock.sample(time, call.writtenAt, now, call.socket);
    if (call.sends > 1 || now >= (request.deadline as number)) request.fail(new ExpiredError());
    else this.send(call, request, clock);
  }

  private fail(call: ScriptCall, request: ScriptRequest, error: unknown): void {
    // A command that failed by the `commandTimeout` of ioredis stays in its queue, and would be executed after it has connected.
    call.abandon();
    request.fail(this.lifecycle.commandFailed(error));
  }
}

function isExpired(reply: unknown): reply is readonly ['expired', time: number] {
  return Array.isArray(reply) && reply[0] === 'expired';
}
