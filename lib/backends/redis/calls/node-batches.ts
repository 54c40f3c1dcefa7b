import type { Runtime } from '../../runtime.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { slotOf } from '../hash-slot.js';
import { type BatchedScript, CommandBatch } from './command-batch.js';

/** One kind of command, batched for each node that has its keys: a slow node holds up its own alone. */
export class NodeBatches<Request extends { readonly key: string }, Reply> {
  private readonly batches = new Map<string, CommandBatch<Request, Reply>>();

  constructor(
    private readonly script: BatchedScript<Request, Reply>,
    private readonly connection: RedisConnection,
    private readonly runtime: Runtime,
    private readonly commandTimeout: number,
  ) {}

  call(request: Request): Promise<Reply> {
    const { connection } = this;
    const node = connection.isCluster ? connection.nodeOf(slotOf(request.key)) : '';
    let batch = this.batches.get(node);
    if (batch === undefined) {
      batch = new CommandBatch(this.script, connection, this.runtime, this.commandTimeout);
      this.batches.set(node, batch);
    }
    return batch.call(request);
  }

  /** Rejects what has no answer. */
  close(): void {
    for (const batch of this.batches.values()) batch.close();
  }
}
