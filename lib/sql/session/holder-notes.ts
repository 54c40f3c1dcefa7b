import { BackendError } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import { ConnectionLost, type SqlConnection } from '../driver/sql-connection.js';
import type { HolderEntry, LockServer, TokenRange } from '../server/lock-server.js';
import type { ControlConnection } from './control-connection.js';

interface Note {
  readonly entry: HolderEntry;
  resolve(range: TokenRange): void;
  reject(error: unknown): void;
}

/**
 * Writes holders into the state table, in autocommit: the token outlives a holder whose transaction is rolled back. One
 * statement is under way at a time. Notes that come meanwhile travel together in the next one, so that they share a
 * round trip and a write to the disk.
 */
export class HolderNotes {
  private waiting: Note[] = [];
  private isFlushing = false;

  constructor(
    private readonly server: LockServer,
    private readonly control: ControlConnection,
    private readonly runtime: Runtime,
  ) {}

  /** @throws BackendError */
  write(entry: HolderEntry): Promise<TokenRange> {
    if (this.server.mostNotes === 1) return this.control.run((connection) => this.noteOne(connection, entry));
    return new Promise((resolve, reject) => {
      this.waiting.push({ entry, resolve, reject });
      if (this.isFlushing) return;
      this.isFlushing = true;
      // Those that are asked for in this tick travel together.
      this.runtime.detached(() => process.nextTick(() => this.flush()));
    });
  }

  private async flush(): Promise<void> {
    while (this.waiting.length > 0) await this.send(this.takeBatch());
    this.isFlushing = false;
  }

  /** In one statement a lock can be noted once. */
  private takeBatch(): readonly Note[] {
    const batch = new Map<string, Note>();
    const rest: Note[] = [];
    for (const note of this.waiting)
      if (batch.size < this.server.mostNotes && !batch.has(note.entry.key)) batch.set(note.entry.key, note);
      else rest.push(note);
    this.waiting = rest;
    return [...batch.values()];
  }

  /** Settles every note of the batch. It never rejects. */
  private async send(batch: readonly Note[]): Promise<void> {
    try {
      await this.control.run((connection) => this.noteAll(connection, batch));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  private async noteAll(connection: SqlConnection, batch: readonly Note[]): Promise<void> {
    let ranges: readonly (TokenRange | undefined)[];
    try {
      ranges = await this.server.note(
        connection,
        batch.map(({ entry }) => entry),
      );
    } catch (error) {
      if (batch.length === 1 || error instanceof ConnectionLost) throw error;
      // One lock whose state is locked by somebody else is no reason to fail the others.
      ranges = [];
    }
    for (const [index, { entry, resolve, reject }] of batch.entries()) {
      const range = ranges[index];
      if (range !== undefined) resolve(range);
      else
        await this.noteOne(connection, entry).then(resolve, (error) => {
          if (connection.ended !== undefined) throw error;
          reject(this.control.toBackendError(error));
        });
    }
  }

  /** Makes the row of the state where it is missing. */
  private async noteOne(connection: SqlConnection, entry: HolderEntry): Promise<TokenRange> {
    const [noted] = await this.server.note(connection, [entry]);
    if (noted !== undefined) return noted;
    await this.server.makeState(connection, entry.key);
    const [second] = await this.server.note(connection, [entry]);
    if (second === undefined)
      throw new BackendError('the row of the lock in the state table could not be created', 'unavailable', 'refused');
    return second;
  }
}
