import { chunksOf } from '../../chunks.js';
import type { ClientRecord, KeyPage, LockDirectory } from '../../lock-backend.js';
import type { ScriptContext } from '../calls/script-context.js';
import { noteBlock, readClient, readClients, writeClient } from './client-records.js';
import type { NodeCommands } from './node-commands.js';
import { scanLocks } from './scan-locks.js';

/** How many records are read at once. Reading thousands at once would block the event loop, and delay acquisitions. */
const RECORDS_AT_ONCE = 100;

/** The {@link LockDirectory} of a Redis: by SCAN over all masters, and a hash for each client. */
export class RedisDirectory implements LockDirectory {
  constructor(
    private readonly context: ScriptContext,
    readonly commands: NodeCommands,
  ) {}

  async list(prefix: string, match: string, cursor: string | undefined, count: number): Promise<KeyPage | undefined> {
    const { connection } = this.context;
    await this.ready();
    return scanLocks(prefix, match, cursor, count, connection, this.commands);
  }

  /** Settles when the server has answered once, and is known to be usable; a cluster client knows its masters then. */
  async ready(): Promise<void> {
    const { connection } = this.context;
    if (!connection.hasAnswered || connection.topology.masters().length === 0) await readClients(this.context);
  }

  writeClient(record: ClientRecord, lifetime: number): Promise<void> {
    return writeClient(record, lifetime, this.context);
  }

  /** See {@link noteBlock}. */
  noteBlock(clientId: string, blockedFor: number, lifetime: number): Promise<void> {
    return noteBlock(clientId, blockedFor, lifetime, this.context);
  }

  client(clientId: string): Promise<ClientRecord | undefined> {
    return readClient(clientId, this.context);
  }

  async clients(): Promise<readonly ClientRecord[]> {
    const records: (ClientRecord | undefined)[] = [];
    for (const ids of chunksOf(await readClients(this.context), RECORDS_AT_ONCE))
      records.push(...(await Promise.all(ids.map((id) => readClient(id, this.context)))));
    return records.filter((record) => record !== undefined);
  }
}
