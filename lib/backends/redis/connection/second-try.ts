import { BackendError } from '../../lock-backend.js';
import type { ConnectionContext } from '../links/connection-context.js';
import type { Topology } from '../links/topology.js';
import { ExpiredError, errorCode, messageOf } from './redis-errors.js';
import type { ReplicaExit } from './replica-exit.js';
import type { ScriptCall, ScriptRequest } from './script-call.js';

/** How long a second try may take that begins when the time of the first one is over, in milliseconds. */
const SECOND_TRY = 1_000;

/**
 * When a script that acquires a lock is sent once more, on another connection: if its first one broke, has gone silent,
 * or led to a replica. The caller may be one that tries only once, and a connection that a firewall has dropped says
 * nothing about the lock. That is safe, because these scripts may be executed twice.
 */
export class SecondTry {
  constructor(
    private readonly topology: Topology,
    private readonly context: ConnectionContext,
    private readonly replicas: ReplicaExit,
  ) {}

  /** Called when a call has failed. @returns whether it is prepared for a second try */
  followsError(call: ScriptCall, request: ScriptRequest, error: unknown): boolean {
    const isReplica = errorCode(messageOf(error)) === 'READONLY';
    const isElsewhere = isReplica ? this.replicas.leave(call.socket) : isLost(call, error);
    if (!isElsewhere || !this.mayRepeat(call, request)) return false;
    call.repeat(isReplica && !call.resent);
    request.extend(this.secondDeadline);
    return true;
  }

  /** Called when no answer has arrived in time. @returns whether the caller waits longer, for a second try */
  followsSilence(call: ScriptCall, request: ScriptRequest): boolean {
    return this.topology.replacesSilentConnections && call.isSilent && this.extend(call, request);
  }

  /** Lets the caller wait longer for a second try, once. */
  extend(call: ScriptCall, request: ScriptRequest): boolean {
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
}

/** Whether the connection broke before an answer arrived. */
function isLost(call: ScriptCall, error: unknown): boolean {
  if (call.isAnswer(error) || error instanceof BackendError || error instanceof ExpiredError) return false;
  return errorCode(messageOf(error)) === undefined;
}
