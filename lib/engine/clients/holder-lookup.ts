import { agedRecord, type ClientRecord, type LockBackend } from '../../backends/lock-backend.js';
import { clientOf, isRedisson } from '../../backends/owner-ids.js';
import type { Runtime } from '../../backends/runtime.js';
import {
  type ClientIdentity,
  describeHolder,
  type HolderClient,
  holderIn,
  withoutRecord,
  withoutRecordBecause,
} from '../describe-holder.js';
import type { HeldLock } from '../hold/held-lock.js';

/** How many milliseconds a record stays fresh. The time is shorter if the record does not mention the lock. */
const FRESH = 10_000;
const FRESH_WITHOUT_LOCK = 1_000;
/** Waits shorter than this are not worth reading a record, in milliseconds. */
const SHORT_WAIT = 100;
const MOST_RECORDS = 1_000;

interface LookupSettings {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly clientId: string;
  readonly identity?: ClientIdentity | undefined;
}

type OwnHold = Pick<HeldLock, 'since' | 'shares'>;

interface KnownRecord {
  readonly record: ClientRecord | undefined;
  readonly at: number;
}

/** Finds out who holds the locks that callers wait for. Only log lines are delayed until its answers arrive. */
export class HolderLookup {
  private readonly records = new Map<string, KnownRecord>();
  private readonly expected = new Set<string>();
  private closed = false;

  constructor(private readonly settings: LookupSettings) {}

  /** The holder of a lock of this process. */
  own({ since, shares }: OwnHold): HolderClient | undefined {
    const { clientId, identity, runtime } = this.settings;
    if (identity === undefined) return undefined;
    const { group = '', method = '' } = shares[0]?.terms ?? {};
    return { clientId, ...identity, group, method, heldFor: Math.round(runtime.monotonic() - since) };
  }

  /** Makes sure that the record of this owner's client is read soon, because a caller begins to wait for the owner. */
  expect(owner: string): void {
    if (this.settings.backend.directory === undefined || this.closed) return;
    if (this.expected.size === 0) this.settings.runtime.timer(SHORT_WAIT, () => this.readExpected());
    this.expected.add(owner);
  }

  /** The client of an owner, if it is already known. */
  known(owner: string | undefined): HolderClient | undefined {
    const known = owner === undefined ? undefined : this.records.get(clientOf(owner));
    if (owner === undefined || known?.record === undefined) return undefined;
    return holderIn(agedRecord(known.record, this.settings.runtime.monotonic() - known.at), owner);
  }

  /** How errors describe an owner without a record; undefined if it has a record, or if its record was not read yet. */
  unrecorded(owner: string | undefined): string | undefined {
    if (owner === undefined || this.settings.backend.directory === undefined) return undefined;
    const known = this.records.get(clientOf(owner));
    const isMissing = known === undefined ? isRedisson(owner) : known.record === undefined;
    return isMissing ? withoutRecord(owner) : undefined;
  }

  /** The client of an owner; undefined when there is no record or no answer. */
  async find(owner: string): Promise<HolderClient | undefined> {
    if (!this.isFresh(owner)) await this.read(clientOf(owner)).catch(() => {}); // it stays unknown
    return this.known(owner);
  }

  /**
   * Finds out how logs describe an owner. Asks the backend only when the holder is not known already, and the backend
   * has a directory.
   *
   * @param client the known details of the holder
   */
  async describe(
    owner: string | undefined,
    client: HolderClient | undefined,
    write: (holder: string) => void,
  ): Promise<void> {
    if (owner === undefined || client?.heldFor !== undefined || this.settings.backend.directory === undefined)
      return write(describeHolder(owner, client));
    const found = await this.find(owner);
    const isKnown = this.records.has(clientOf(owner));
    write(describeHolder(owner, found, isKnown ? withoutRecordBecause(owner) : undefined));
  }

  close(): void {
    this.closed = true;
    this.records.clear();
  }

  private readExpected(): void {
    const owners = [...this.expected];
    this.expected.clear();
    const clients = new Set(owners.filter((owner) => !this.isFresh(owner)).map(clientOf));
    for (const clientId of clients) this.read(clientId).catch(() => {});
  }

  private isFresh(owner: string): boolean {
    const known = this.records.get(clientOf(owner));
    if (known === undefined) return false;
    const isMentioned = known.record?.holds.some((hold) => hold.owner === owner);
    return this.settings.runtime.monotonic() - known.at < (isMentioned ? FRESH : FRESH_WITHOUT_LOCK);
  }

  private async read(clientId: string): Promise<void> {
    const { directory } = this.settings.backend;
    if (directory === undefined || this.closed) return;
    const record = await directory.client(clientId);
    if (this.closed) return;
    if (this.records.size >= MOST_RECORDS) this.records.clear();
    this.records.set(clientId, { record, at: this.settings.runtime.monotonic() });
  }
}
