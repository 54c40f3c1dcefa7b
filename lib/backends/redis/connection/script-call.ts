import type { Script } from '../scripts.js';
import type { Client } from './client-source.js';
import type { Delivery } from './redis-errors.js';
import { ScriptCommand, sendOn } from './script-command.js';

/** What a script is called with, and who is told of its end: `done` or `fail` is called once, later. */
export interface ScriptRequest {
  readonly script: Script;
  /** All in one slot of a cluster. */
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /**
   * When the caller stops waiting, on the monotonic clock. Given for scripts that take something: they get the server's time at that
   * moment as their first argument, and do nothing afterwards. Undefined: the script does not ask for it.
   */
  readonly deadline: number | undefined;
  /** The caller will repeat it in parts when its keys are on different nodes. */
  readonly divisible: boolean;
  done(reply: unknown): void;
  fail(error: unknown): void;
}

/** A command that was written, as far as it matters whether the server is silent. */
export interface SentCommand {
  /** See ScriptCommand. */
  readonly silence: number | undefined;
  hangUp(error: Error): void;
}

/** One run of a script: by its checksum, or by its source where the server does not know it (yet, or any more). */
export class ScriptCall implements Delivery {
  /** Server time in ms after which it is not executed any more, as the script was told. */
  validUntil: number | undefined;
  private command: ScriptCommand | undefined;
  private wasResent = false;
  private abandoned = false;

  constructor(
    private readonly client: Client,
    private readonly request: ScriptRequest,
  ) {}

  /** @param limit what the script gets as its first argument */
  send(limit: string | undefined, done: (reply: unknown) => void, fail: (error: unknown) => void): void {
    if (this.abandoned) return;
    const { script, keys, args } = this.request;
    const own = limit === undefined ? NO_LIMIT : [limit];
    if (limit !== undefined) this.validUntil = Number(limit);
    // Not one literal: V8 would come to put its arrays into the old generation, where each keeps its hundreds of strings from being collected soon.
    const asked = [script.sha1, String(keys.length)].concat(keys, own, args);
    this.write('evalsha', asked, done, (error) => {
      // Late, it would be executed for nobody.
      if (!isUnknownScript(error) || this.abandoned) return fail(error);
      this.wasResent = this.resent;
      this.write('eval', [script.source, ...asked.slice(1)], done, fail);
    });
  }

  get written(): boolean {
    return this.command?.socket !== undefined;
  }

  get resent(): boolean {
    return this.wasResent || this.command?.resent === true;
  }

  /** The connection that it was executed on. */
  get socket(): object | undefined {
    return this.command?.socket;
  }

  /** When it was written last, on the monotonic clock. */
  get writtenAt(): number {
    return this.command?.writtenAt ?? 0;
  }

  /** What was written of it; undefined: nothing was, as long as the server's clock is not known. */
  get latest(): SentCommand | undefined {
    return this.command;
  }

  /** Nobody waits for it any more: it is not to be executed if that can still be avoided. */
  abandon(): void {
    this.abandoned = true;
    this.command?.abandon();
  }

  private write(name: string, args: string[], done: (reply: unknown) => void, fail: (error: unknown) => void): void {
    const command = new ScriptCommand(name, args);
    this.command = command;
    if (this.request.divisible && this.client.isCluster) command.failOnTryAgain();
    sendOn(this.client, command).then(done, fail);
  }
}

const NO_LIMIT: readonly string[] = [];

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
