import { BackendError } from '../../lock-backend.js';
import { integerOf, listOf, unexpected } from '../calls/reply-shape.js';
import { slotOf } from '../hash-slot.js';
import { scripts } from '../scripts.js';
import type { Client } from './client-source.js';
import { isCluster } from './client-source.js';
import { messageOf, withoutSecrets } from './redis-errors.js';
import { ScriptCommand, sendOn } from './script-command.js';
import { ServerClock } from './server-clock.js';

/** Milliseconds by which an estimate may be too large that is not to be improved at once. */
const LITTLE_DOUBT = 100;
const MOST_QUESTIONS = 3;

/** What is asked of every server before the first script runs there: that it has our database, and what its clock shows. */
export class ServerClocks {
  /** One for each node of a cluster. */
  private readonly clocks = new Map<string, ServerClock>();
  private readonly single = new ServerClock();
  private readonly learning = new Map<string, Promise<ServerClock>>();
  /** The latest question that has no answer. */
  question: ScriptCommand | undefined;

  /** @param onLearned called when a server has answered */
  constructor(
    private readonly client: Client,
    private readonly owned: boolean,
    private readonly description: string,
    private readonly onLearned: () => void,
  ) {}

  /** The clock of the server that has these keys. */
  of(keys: readonly string[]): ServerClock {
    return isCluster(this.client) ? this.named(this.nodeOf(keys)) : this.single;
  }

  /** As {@link of}, when the server has answered. */
  learn(keys: readonly string[]): Promise<ServerClock> {
    const node = this.nodeOf(keys);
    let learning = this.learning.get(node);
    if (learning === undefined) {
      learning = this.ask(keys).finally(() => this.learning.delete(node));
      this.learning.set(node, learning);
    }
    return learning;
  }

  /** Asks once more, beside what goes on. */
  refresh(keys: readonly string[]): void {
    this.learn(keys).catch(() => {});
  }

  /** The servers may be others now. */
  forget(): void {
    this.single.forget();
    this.clocks.clear();
  }

  private async ask(keys: readonly string[]): Promise<ServerClock> {
    await this.checkDatabase();
    let clock = await this.askTime(keys);
    // What was held up on its way made the server's clock seem to be ahead, and requests to be welcome for longer than they are.
    for (let again = 0; clock.doubt > LITTLE_DOUBT && again < MOST_QUESTIONS; again++) clock = await this.askTime(keys);
    this.onLearned();
    return clock;
  }

  private async askTime(keys: readonly string[]): Promise<ServerClock> {
    const [key] = keys;
    const command =
      isCluster(this.client) && key !== undefined
        ? new ScriptCommand('eval', [scripts['time-1'].source, '1', key])
        : new ScriptCommand('time', []);
    const [seconds, micros] = listOf(await this.send(command), this.description);
    const time = integerOf(seconds, this.description) * 1_000 + Math.floor(integerOf(micros, this.description) / 1_000);
    const clock = this.of(keys);
    clock.sample(time, command.writtenAt, performance.now(), command.socket);
    return clock;
  }

  /** ioredis tells of a database that is not there by one line in the log, and goes on in database 0. */
  private async checkDatabase(): Promise<void> {
    const { client, owned, description } = this;
    const db = isCluster(client) ? 0 : client.options.db;
    if (!owned || !db) return;
    try {
      const reply = await this.send(new ScriptCommand('select', [String(db)]));
      if (reply !== 'OK') throw unexpected(reply, description);
    } catch (error) {
      const message = messageOf(error);
      if (!/^(ERR|NOPERM)\b/.test(message)) throw error;
      throw new BackendError(
        `${description}: database ${db} cannot be used (${message}). Name a database that exists in the connection, or raise 'databases' in redis.conf`,
        'denied',
        'refused',
        { cause: withoutSecrets(error) },
      );
    }
  }

  private async send(command: ScriptCommand): Promise<unknown> {
    this.question = command;
    try {
      return await sendOn(this.client, command);
    } finally {
      if (this.question === command) this.question = undefined;
    }
  }

  private nodeOf([key]: readonly string[]): string {
    const { client } = this;
    return isCluster(client) && key !== undefined ? (client.slots[slotOf(key)]?.[0] ?? '') : '';
  }

  private named(node: string): ServerClock {
    let clock = this.clocks.get(node);
    if (clock === undefined) {
      clock = new ServerClock();
      // Under '' go keys whose node is not known yet: that is never remembered.
      if (node !== '') this.clocks.set(node, clock);
    }
    return clock;
  }
}
