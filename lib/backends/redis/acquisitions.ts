import type {
  AcquireAllReply,
  Acquired,
  AcquireReply,
  AcquireRequest,
  LockType,
  OwnerRef,
  TransferRequest,
} from '../lock-backend.js';
import { NodeBatches } from './calls/node-batches.js';
import type { ScriptContext } from './calls/script-context.js';
import { SingleCalls } from './calls/single-calls.js';
import { AcquireBatch } from './commands/acquire.js';
import { acquireAll } from './commands/acquire-all.js';
import { pass } from './commands/transfer.js';
import { ofEachType } from './of-each-type.js';
import type { RedisBackendOptions } from './redis-backend-options.js';
import { ReplicaCheck, TracedBatch, type TracedReply } from './replica-check.js';

/** All that takes a lock. */
export interface Acquisitions {
  acquire(request: AcquireRequest): Promise<AcquireReply>;
  acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply>;
  pass(request: TransferRequest): Promise<Acquired | undefined>;
  close(): Promise<void>;
}

/** Acquisitions that count as soon as the master has them, on the connection of all other commands. */
export class PlainAcquisitions implements Acquisitions {
  private readonly batches: Record<LockType, NodeBatches<AcquireRequest, AcquireReply>>;

  constructor(
    private readonly scripts: ScriptContext,
    { runtime, commandTimeout }: RedisBackendOptions,
  ) {
    const { connection, tokens } = scripts;
    this.batches = ofEachType(
      (type) => new NodeBatches(new AcquireBatch(type, connection, tokens), connection, runtime, commandTimeout),
    );
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    return this.batches[request.type].call(request);
  }

  acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply> {
    return acquireAll(requests, this.scripts);
  }

  pass(request: TransferRequest): Promise<Acquired | undefined> {
    return pass(request, this.scripts);
  }

  async close(): Promise<void> {
    for (const batch of Object.values(this.batches)) batch.close();
  }
}

/** Acquisitions that count when enough replicas have them, on a connection of their own. */
export class ReplicatedAcquisitions implements Acquisitions {
  private readonly scripts: ScriptContext;
  private readonly check: ReplicaCheck;
  private readonly batches: Record<LockType, NodeBatches<AcquireRequest, TracedReply>>;

  /** @param giveBack releases what too few replicas had */
  constructor(scripts: ScriptContext, options: RedisBackendOptions, giveBack: (holding: OwnerRef) => Promise<unknown>) {
    const { runtime, commandTimeout, replicaTimeout } = options;
    const { tokens } = scripts;
    // No answer for so long is no sign of a broken connection here.
    const patience = { onWarning: () => {}, ...options, commandTimeout: commandTimeout + replicaTimeout };
    const connection = scripts.connection.duplicate(patience);
    this.check = new ReplicaCheck({ ...options, connection, giveBack });
    const single = new SingleCalls(connection, runtime, commandTimeout);
    this.scripts = { ...scripts, connection, single, replicaCheck: this.check };
    this.batches = ofEachType((type) => {
      const batch = new TracedBatch(new AcquireBatch(type, connection, tokens));
      return new NodeBatches(batch, connection, runtime, commandTimeout);
    });
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { reply, call } = await this.batches[request.type].call(request);
    if (reply.acquired) await this.check.confirm(call, [request]);
    return reply;
  }

  acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply> {
    return acquireAll(requests, this.scripts);
  }

  pass(request: TransferRequest): Promise<Acquired | undefined> {
    return pass(request, this.scripts);
  }

  async close(): Promise<void> {
    for (const batch of Object.values(this.batches)) batch.close();
    this.scripts.single.close();
    await this.scripts.connection.close();
  }
}
