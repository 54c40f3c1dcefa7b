import type { Runtime } from '../../runtime.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { Batchable, BatchedScript } from './batched-script.js';
import { CommandBatch } from './command-batch.js';

/** The requests of one command, batched for each node separately: a slow node delays only its own requests. */
export class NodeBatches<Request extends Batchable, Reply> {
  private readonly batches = new Map<string, CommandBatch<Request, Reply>>();
  private closed = false;

  constructor(
    private readonly command: BatchedScript<Request, Reply>,
    private readonly connection: RedisConnection,
    private readonly runtime: Runtime,
    private readonly commandTimeout: number,
  ) {}

  call(request: Request): Promise<Reply> {
    const { connection } = this;
    const node = connection.nodeOfKey(request.key);
    let batch = this.batches.get(node);
    if (batch === undefined) {
      batch = new CommandBatch(this.command, connection, this.runtime, this.commandTimeout);
      if (this.closed) batch.close();
      this.batches.set(node, batch);
    }
    return batch.call(request);
  }

  /** Rejects all requests that have no answer, and all later ones. */
  close(): void {
    this.closed = true;
    for (const batch of this.batches.values()) batch.close();
  }
}
