import type { SentCommand } from '../links/link.js';
import type { Topology } from '../links/topology.js';
import type { Script } from '../scripts.js';
import { silenceAdvice } from './connection-advice.js';
import type { Delivery } from './redis-errors.js';

/**
 * The arguments of a script call, and the functions that receive its answer. Either `done` or `fail` is called, once
 * and asynchronously.
 */
export interface ScriptRequest {
  readonly script: Script;
  /** On a cluster, all keys are in one slot. */
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /**
   * When the caller stops waiting, on the monotonic clock. Scripts that take something receive the server's time at
   * that moment as their first argument, and do nothing after it. Undefined for other scripts.
   */
  readonly deadline: number | undefined;
  /**
   * For scripts without a deadline: a moment on the monotonic clock. They receive the server's time at that moment, or
   * a little earlier, as their first argument.
   */
  readonly moment?: number | undefined;
  /** Whether the caller repeats the call in parts if its keys are on different nodes. */
  readonly divisible: boolean;
  /**
   * Whether the call may be made a second time if the first one got no answer, or reached a replica: it has a
   * {@link deadline}, and its callers still wait for it.
   */
  readonly repeatable: boolean;
  /** Called before the second try. The caller waits until then, if that is later than its {@link deadline}. */
  extend(deadline: number): void;
  done(reply: unknown): void;
  fail(error: unknown): void;
}

/** One call of a script: by its checksum, or by its source if the server does not know the checksum. */
export class ScriptCall implements Delivery {
  private command: SentCommand | undefined;
  private wasResent = false;
  private abandoned = false;
  private wasWritten = false;
  /** How often the server found that its deadline had passed. */
  expirations = 0;
  /** Whether there was a second try. */
  isRepeated = false;
  /** Whether the caller waits longer for a second try. */
  isExtended = false;
  private time: string | undefined;

  constructor(
    private readonly topology: Topology,
    private readonly request: ScriptRequest,
    private readonly connection: { readonly hasAnswered: boolean },
  ) {}

  /** @param time what the script gets as its first argument */
  send(time: string | undefined, done: (reply: unknown) => void, fail: (error: unknown) => void): void {
    if (this.abandoned) return;
    const { script } = this.request;
    this.time = time;
    const command = commandOf(this.request, time);
    this.write('evalsha', command, done, (error) => {
      // The caller has stopped waiting, so the script must not be executed any more.
      if (!isUnknownScript(error) || this.abandoned) return fail(error);
      this.write('eval', [script.source, ...command.slice(1)], done, fail);
    });
  }

  /** The server time in ms after which the script does nothing, as it was sent to the script. */
  get validUntil(): number | undefined {
    return this.request.deadline === undefined || this.time === undefined ? undefined : Number(this.time);
  }

  get wasServed(): boolean {
    return this.connection.hasAnswered;
  }

  get isBorrowed(): boolean {
    return !this.topology.owned;
  }

  get silenceAdvice(): string | undefined {
    return silenceAdvice(this.topology, this.command);
  }

  get written(): boolean {
    return this.wasWritten || this.command?.socket !== undefined;
  }

  /** Whether its last command may never be answered: nothing has arrived on its connection since it was written. */
  get isSilent(): boolean {
    const { command } = this;
    return command?.socket !== undefined && (command.isLost || command.resent || command.idleSinceWrite !== undefined);
  }

  get resent(): boolean {
    return this.wasResent || this.command?.resent === true;
  }

  isAnswer(error: unknown): boolean {
    return this.command?.isAnswer(error) ?? false;
  }

  /** The connection on which the script was executed. */
  get socket(): object | undefined {
    return this.command?.socket;
  }

  /** When it was written last, on the monotonic clock. */
  get writtenAt(): number {
    return this.command?.writtenAt ?? 0;
  }

  /** The latest command that was created for the call; undefined while the server's clock is not known. */
  get latest(): SentCommand | undefined {
    return this.command;
  }

  /**
   * Prepares a second try.
   *
   * @param refused whether the first one was certainly not executed
   */
  repeat(refused: boolean): void {
    this.isRepeated = true;
    this.command?.abandon();
    if (refused) return;
    this.wasResent = this.wasWritten = this.written;
  }

  /** Prevents the execution of the call, if that is still possible, because its caller has stopped waiting. */
  abandon(): void {
    this.abandoned = true;
    this.command?.abandon();
  }

  private write(name: string, args: string[], done: (reply: unknown) => void, fail: (error: unknown) => void): void {
    // An answer concerns the last copy of the former command. An earlier one may have been executed.
    if (this.resent) this.wasResent = this.wasWritten = true;
    const { keys, divisible } = this.request;
    const command = this.topology.send(name, args, keys[0], divisible);
    this.command = command;
    command.reply.then(done, fail);
  }
}

/**
 * The arguments of EVALSHA. They are not built with a literal, because V8 would begin to allocate these arrays in the
 * old generation, where each keeps hundreds of strings in memory for long. Nor are they built with `concat`, which
 * takes twice as long.
 */
function commandOf({ script, keys, args }: ScriptRequest, time: string | undefined): string[] {
  const command = new Array<string>(2 + keys.length + (time === undefined ? 0 : 1) + args.length);
  command[0] = script.sha1;
  command[1] = String(keys.length);
  let at = 2;
  for (const key of keys) command[at++] = key;
  if (time !== undefined) command[at++] = time;
  for (const arg of args) command[at++] = arg;
  return command;
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
