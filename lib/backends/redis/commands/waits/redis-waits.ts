import type { WaitBackend, WaitChange } from '../../../wait-backend.js';
import type { ScriptContext } from '../../calls/script-context.js';
import { waitsOf } from '../../lock-keys.js';
import { arrayOf, integerOf } from '../../reply-shape.js';
import { scripts } from '../../scripts.js';

/** The waits of callers that hold locks: a hash for each owner, in a separate slot. */
export class RedisWaits implements WaitBackend {
  constructor(private readonly context: ScriptContext) {}

  async clockOffset(holder: string): Promise<number> {
    const { notes, connection } = this.context;
    const { description } = connection;
    // The script ignores the time limit. callInTime is used because it also returns the call, which knows when it was
    // written to the socket.
    const { reply, call } = await notes.callInTime(scripts['time-1'], [waitsOf(holder)], []);
    const [seconds, micros] = arrayOf(reply, description);
    const time = integerOf(seconds, description) * 1_000 + integerOf(micros, description) / 1_000;
    return time - call.writtenAt;
  }

  holders(key: string): Promise<readonly string[]> {
    return this.list(this.context.notes.call(scripts['find-holders-1'], [key], []));
  }

  async write(changes: readonly WaitChange[], lifetime: number): Promise<void> {
    await Promise.all(
      changes.map(({ holder, waiting, ended }) => {
        const args = [String(lifetime), String(ended.length), ...ended, ...[...waiting].flat()];
        return this.context.notes.callInTime(scripts['write-waits-1'], [waitsOf(holder)], args);
      }),
    );
  }

  read(holders: readonly string[]): Promise<readonly ReadonlyMap<string, string>[]> {
    return Promise.all(
      holders.map(async (holder) => {
        const fields = await this.list(this.context.notes.call(scripts['read-waits-1'], [waitsOf(holder)], []));
        const waits = new Map<string, string>();
        for (let f = 0; f < fields.length; f += 2) waits.set(fields[f], fields[f + 1]);
        return waits;
      }),
    );
  }

  private async list(reply: Promise<unknown>): Promise<readonly string[]> {
    return arrayOf(await reply, this.context.connection.description).map(String);
  }
}
