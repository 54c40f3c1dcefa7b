import {
  agedRecord,
  type ClientRecord,
  type KeyPage,
  keyPage,
  type LockDirectory,
  parseClientRecord,
} from '../backend.js';
import type { LockServer, WrittenRecord } from './server/lock-server.js';
import type { ControlConnection } from './session/control-connection.js';

/**
 * The {@link LockDirectory} of a database. There are few held locks, because each one uses a session. Records of
 * clients are in a separate table.
 */
export class SqlDirectory implements LockDirectory {
  constructor(
    private readonly control: ControlConnection,
    private readonly server: LockServer,
  ) {}

  async list(prefix: string, match: string, cursor: string | undefined, count: number): Promise<KeyPage | undefined> {
    const keys = await this.control.run((connection) => this.server.heldKeys(connection));
    return keyPage(keys, prefix, match, cursor, count);
  }

  async writeClient(record: ClientRecord, lifetime: number): Promise<void> {
    const { clients } = this.server;
    const { clientId } = record;
    await this.control.run((connection) =>
      lifetime > 0
        ? clients.write(connection, clientId, JSON.stringify(record), lifetime)
        : clients.remove(connection, clientId),
    );
  }

  async client(clientId: string): Promise<ClientRecord | undefined> {
    const [written] = await this.control.run((connection) => this.server.clients.read(connection, clientId));
    return written && toRecord(written);
  }

  async clients(): Promise<readonly ClientRecord[]> {
    const written = await this.control.run((connection) => this.server.clients.read(connection));
    return written.map(toRecord).filter((record) => record !== undefined);
  }
}

/** @returns undefined for a record that no version of this library writes */
function toRecord({ record, age }: WrittenRecord): ClientRecord | undefined {
  try {
    const read = parseClientRecord(Object(JSON.parse(record)));
    return read && agedRecord(read, Math.max(0, age));
  } catch {
    return undefined;
  }
}
