import type { Client } from './client-source.js';
import type { Delivery } from './redis-errors.js';
import { ScriptCommand, sendOn } from './script-command.js';
import type { Script } from './scripts.js';

/** One run of a script: by its checksum, or by its source where the server does not know it (yet, or any more). */
export class ScriptCall implements Delivery {
  private command!: ScriptCommand;
  private wasResent = false;

  constructor(
    private readonly client: Client,
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    private readonly divisible: boolean,
    done: (reply: unknown) => void,
    fail: (error: unknown) => void,
  ) {
    // Not one literal: V8 would come to put its arrays into the old generation, where each keeps its hundreds of strings from being collected soon.
    const asked = [script.sha1, String(keys.length)].concat(keys, args);
    this.send('evalsha', asked, done, (error) => {
      if (!isUnknownScript(error)) return fail(error);
      this.wasResent = this.command.resent;
      this.send('eval', [script.source, ...asked.slice(1)], done, fail);
    });
  }

  get written(): boolean {
    return this.command.socket !== undefined;
  }

  get resent(): boolean {
    return this.wasResent || this.command.resent;
  }

  /** The connection that it was executed on. */
  get socket(): object | undefined {
    return this.command.socket;
  }

  /** See {@link ScriptCommand.silence}. */
  get silence(): number | undefined {
    return this.command.silence;
  }

  /** Ends the connection that it was written to: what has no answer is sent again on a new one. */
  hangUp(error: Error): void {
    this.command.socket?.destroy(error);
  }

  /** Nobody waits for it any more: it is not to be executed if that can still be avoided. */
  abandon(): void {
    this.command.abandon();
  }

  private send(name: string, args: string[], done: (reply: unknown) => void, fail: (error: unknown) => void): void {
    const command = new ScriptCommand(name, args);
    this.command = command;
    if (this.divisible && this.client.isCluster) command.failOnTryAgain();
    sendOn(this.client, command).then(done, fail);
  }
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
