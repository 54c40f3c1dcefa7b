import type {
  AcquireAllReply,
  Acquired,
  AcquireReply,
  AcquireRequest,
  AdoptReply,
  AdoptRequest,
  Grant,
  HeldType,
  OwnerRef,
  ReleaseReply,
  TransferRequest,
} from '../lock-backend.js';
import { NodeBatches } from './calls/node-batches.js';
import type { ScriptContext } from './calls/script-context.js';
import { SingleCalls } from './calls/single-calls.js';
import { AcquireBatch } from './commands/acquire.js';
import { AcquireAllBatch, acquireAll, type LocksOfCaller } from './commands/acquire-all.js';
import { adopt, enterLine, transfer } from './commands/lock-commands.js';
import type { ScriptCall } from './connection/script-call.js';
import type { ConnectionContext } from './links/connection-context.js';
import { ofEachType } from './of-each-type.js';
import { ReplicaCheck } from './replica-check.js';

export interface AcquisitionOptions extends ConnectionContext {
  /** An acquisition succeeds only if this many replicas have confirmed it within `commandTimeout`. With 0, replicas are not asked. */
  readonly minReplicas: number;
}

/**
 * Callers that want more locks than this at once are sent separately, because a long script would block other clients.
 */
const MOST_LOCKS_IN_BATCH = 8;

/**
 * Everything that acquires a lock. With `minReplicas`, it uses a separate connection, because WAIT blocks the
 * connection.
 */
export class Acquisitions {
  /** The connection that acquires locks. */
  readonly scripts: ScriptContext;
  private readonly batches: Record<HeldType, NodeBatches<AcquireRequest, AcquireReply>>;
  private readonly severalBatch: NodeBatches<LocksOfCaller, AcquireAllReply>;
  /** The call of each acquisition, if replicas have to confirm it. */
  private readonly calls = new WeakMap<object, ScriptCall>();

  /** @param release releases locks that too few replicas have confirmed */
  constructor(
    private readonly shared: ScriptContext,
    options: AcquisitionOptions,
    release: (owner: OwnerRef) => Promise<ReleaseReply>,
  ) {
    const { runtime, commandTimeout, minReplicas } = options;
    this.scripts = minReplicas > 0 ? replicated(shared, options, release) : shared;
    const { connection, highestToken, replicaCheck } = this.scripts;
    const onAcquired = replicaCheck && ((reply: object, call: ScriptCall) => void this.calls.set(reply, call));
    this.batches = ofEachType((type) => {
      const batch = new AcquireBatch(type, connection, highestToken, onAcquired);
      return new NodeBatches(batch, connection, runtime, commandTimeout);
    });
    const several = new AcquireAllBatch(connection, highestToken, onAcquired);
    this.severalBatch = new NodeBatches(several, connection, runtime, commandTimeout);
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    const reply = this.batches[request.type].call(request);
    return this.scripts.replicaCheck === undefined ? reply : this.confirmed([request], reply);
  }

  /** Acquires a lock, or enters its line. */
  enterLine(request: AcquireRequest): Promise<AcquireReply> {
    return enterLine(request, this.scripts);
  }

  /** See `LineBackend.begun`. */
  begun({ token, reserved }: Grant): void {
    this.scripts.highestToken.note(token + reserved);
  }

  acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply> {
    if (requests.length === 0) return Promise.resolve({ acquired: true, tokens: [] });
    const isBatched = requests.length <= MOST_LOCKS_IN_BATCH && requests.every(({ type }) => type === 'reentrant');
    if (!isBatched) return acquireAll(requests, this.scripts);
    const reply = this.severalBatch.call({ key: requests[0].key, requests });
    return this.scripts.replicaCheck === undefined ? reply : this.confirmed(requests, reply);
  }

  transfer(request: TransferRequest): Promise<Acquired | undefined> {
    return transfer(request, this.scripts);
  }

  adopt(request: AdoptRequest): Promise<AdoptReply> {
    return adopt(request, this.scripts);
  }

  async close(): Promise<void> {
    for (const batch of Object.values(this.batches)) batch.close();
    this.severalBatch.close();
    if (this.scripts === this.shared) return;
    this.scripts.single.close();
    await this.scripts.connection.close();
  }

  private async confirmed<Reply extends object>(
    requests: readonly AcquireRequest[],
    answer: Promise<Reply>,
  ): Promise<Reply> {
    const reply = await answer;
    const call = this.calls.get(reply);
    if (call !== undefined) await this.scripts.replicaCheck?.confirm(call, requests);
    return reply;
  }
}

function replicated(
  shared: ScriptContext,
  options: AcquisitionOptions,
  release: (owner: OwnerRef) => Promise<ReleaseReply>,
): ScriptContext {
  const { runtime, commandTimeout } = options;
  // While WAIT runs, this connection is silent although it is not broken.
  const connection = shared.connection.duplicate({ ...options, commandTimeout: 2 * commandTimeout });
  const single = new SingleCalls(connection, runtime, commandTimeout);
  return { ...shared, connection, single, replicaCheck: new ReplicaCheck({ ...options, connection, release }) };
}
