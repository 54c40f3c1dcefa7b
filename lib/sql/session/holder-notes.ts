import { BackendError, type Runtime } from '../../backend.js';
import { ConnectionLost, type SqlConnection } from '../driver/sql-connection.js';
import type { HolderNote, LockServer } from '../server/lock-server.js';
import type { HolderEntry, TokenRange } from '../session-locks/session-locks.js';
import type { ControlConnection } from './control-connection.js';

interface Note {
  readonly entry: HolderEntry;
  resolve(range: TokenRange): void;
  reject(error: unknown): void;
}

interface Withdrawal {
  readonly note: HolderNote;
  resolve(): void;
  reject(error: unknown): void;
}

/** The argument of {@link HolderNotes.withdraw}. A note whose token is not known cannot be withdrawn. */
type NoteToWithdraw = Omit<HolderNote, 'token'> & { readonly token: number | undefined };

/**
 * Up to this many holders at a time are noted by the statements that take their locks, which saves a round trip. With
 * more, notes share statements until none is under way, which saves work and transactions of the server.
 */
const MOST_SEPARATE = 8;

/** The maximum number of notes that one statement withdraws. */
const MOST_WITHDRAWALS = 128;

/**
 * Writes holders into the state table. It uses autocommit, so that the token outlives a holder whose transaction is
 * rolled back. Notes that are requested while a statement runs are written together by the next one, so that they share
 * a round trip and a commit. The same applies to withdrawn notes.
 */
export class HolderNotes {
  private readonly notes: Batches<Note>;
  private readonly withdrawals: Batches<Withdrawal>;
  /** How many statements of {@link separately} are under way. */
  private separate = 0;

  constructor(
    private readonly server: LockServer,
    private readonly control: ControlConnection,
    runtime: Runtime,
  ) {
    const busy = new Set<number>();
    this.notes = new Batches(
      control,
      runtime,
      busy,
      (waiting) => this.takeNotes(waiting),
      (batch, lane) => this.send(batch, lane),
    );
    this.withdrawals = new Batches(
      control,
      runtime,
      busy,
      (waiting) => waiting.splice(0, MOST_WITHDRAWALS),
      (batch, lane) => this.sendWithdrawals(batch, lane),
    );
    this.notes.onFree = () => this.withdrawals.flush();
    this.withdrawals.onFree = () => this.notes.flush();
  }

  /**
   * Sends a statement that takes a lock and records its holder, unless notes should share statements now.
   *
   * @param send returns `undefined` if there is no such statement
   * @returns `undefined` if nothing was sent: take the lock, and {@link write} the note
   */
  separately<T>(send: () => Promise<T> | undefined): Promise<T> | undefined {
    if (this.separate >= MOST_SEPARATE || this.notes.isBusy) return undefined;
    this.separate++;
    const answered = () => void this.separate--;
    const answer = send();
    if (answer === undefined) answered();
    else answer.then(answered, answered);
    return answer;
  }

  /** @throws BackendError */
  write(entry: HolderEntry): Promise<TokenRange> {
    return new Promise((resolve, reject) => this.notes.add({ entry, resolve, reject }));
  }

  /** Records that these locks are free or about to become free. Rejects if their old notes may remain. */
  async withdraw(notes: readonly NoteToWithdraw[]): Promise<void> {
    if (this.server.withdraw === undefined) return;
    await Promise.all(notes.map((note) => this.withdrawOne(note)));
  }

  private withdrawOne({ key, owner, token }: NoteToWithdraw): Promise<void> {
    return new Promise((resolve, reject) => {
      if (token === undefined) reject(new Error('the token of the note is not known'));
      else this.withdrawals.add({ note: { key, owner, token }, resolve, reject });
    });
  }

  /** One statement can note each lock only once. */
  private takeNotes(waiting: Note[]): readonly Note[] {
    const batch = new Map<string, Note>();
    const rest: Note[] = [];
    for (const note of waiting)
      if (batch.size < this.server.mostNotes && !batch.has(note.entry.key)) batch.set(note.entry.key, note);
      else rest.push(note);
    waiting.splice(0, waiting.length, ...rest);
    return [...batch.values()];
  }

  private async sendWithdrawals(batch: readonly Withdrawal[], lane: number): Promise<void> {
    try {
      await this.control.runBeside(lane, async (connection) =>
        this.server.withdraw?.(
          connection,
          batch.map(({ note }) => note),
        ),
      );
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  /** Settles every note of the batch. It never rejects. */
  private async send(batch: readonly Note[], lane: number): Promise<void> {
    try {
      await this.control.runBeside(lane, (connection) => this.noteAll(connection, batch));
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
      // If another client has locked the state of one lock, the others must not fail.
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

  /** Creates the row of the lock in the state table if it is missing. */
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

/** Sends all items that are added in one tick, or while all connections are busy, as one batch. */
class Batches<Item> {
  /** Called when a connection is free, before the next batch is sent. */
  onFree = (): void => {};
  private readonly waiting: Item[] = [];
  private underWay = 0;
  private isScheduled = false;

  /**
   * @param busy the connections that have not answered yet
   * @param send settles each item, and never rejects
   */
  constructor(
    private readonly control: ControlConnection,
    private readonly runtime: Runtime,
    private readonly busy: Set<number>,
    private readonly take: (waiting: Item[]) => readonly Item[],
    private readonly send: (batch: readonly Item[], lane: number) => Promise<void>,
  ) {}

  add(item: Item): void {
    this.waiting.push(item);
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.runtime.detached(() =>
      process.nextTick(() => {
        this.isScheduled = false;
        this.flush();
      }),
    );
  }

  /** Whether items wait, or are under way. */
  get isBusy(): boolean {
    return this.underWay > 0 || this.waiting.length > 0;
  }

  flush(): void {
    while (this.waiting.length > 0) {
      const lane = this.freeLane();
      if (lane === undefined) return this.control.widen();
      this.busy.add(lane);
      this.underWay++;
      this.send(this.take(this.waiting), lane).then(() => {
        this.busy.delete(lane);
        this.underWay--;
        this.onFree();
        this.flush();
      });
    }
  }

  private freeLane(): number | undefined {
    for (let lane = 0; lane < this.control.lanes; lane++) if (!this.busy.has(lane)) return lane;
    return undefined;
  }
}
