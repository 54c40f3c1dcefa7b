import {
  type AcquireReply,
  type AcquireRequest,
  BackendError,
  type Grant,
  type LineBackend,
  type Subscription,
  type Wake,
} from '../lock-backend.js';
import type { Runtime } from '../runtime.js';
import type { Acquisitions } from './acquisitions.js';
import type { ReleaseChannels } from './pubsub/release-channels.js';

/** For how many milliseconds a missing right is not tried again. */
const REFUSED_FOR = 30_000;

const CHANNELS = '&nestjs_redis_lock_turn:*';
const PLACES = '~nestjs_redis_lock_turns*';

interface RedisLineOptions {
  readonly description: string;
  readonly runtime: Runtime;
  readonly onWarning: (message: string) => void;
}

/**
 * The lines of locks in Redis, as far as the user may use them. Rules that were written for an earlier version allow
 * neither the channels nor perhaps the keys of a line. Without them, a process would not be told that it is first, so it
 * waits as for locks without a line. From time to time the rights are tried again.
 */
export class RedisLine implements LineBackend {
  /** When a right was missing, on the monotonic clock. */
  private refusedAt: number | undefined;
  /** Tries a channel that was refused again. Undefined if none was refused since the last one was allowed. */
  private subscribeAgain: ((refused: () => void) => Subscription) | undefined;
  private trial: Subscription | undefined;
  private readonly warnedOf = new Set<string>();

  constructor(
    private readonly channels: ReleaseChannels,
    private readonly acquisitions: Acquisitions,
    private readonly options: RedisLineOptions,
  ) {}

  /** Undefined while the user may not use lines. Now and then it tries whether the user may use them again. */
  ifAllowed(): LineBackend | undefined {
    if (this.refusedAt === undefined) return this;
    if (this.options.runtime.monotonic() - this.refusedAt >= REFUSED_FOR) this.tryAgain();
    return this.refusedAt === undefined ? this : undefined;
  }

  listen(...[key, clientId, listener]: Parameters<LineBackend['listen']>): Subscription {
    const subscribe = (heard: (wake: Wake) => void, refused: (error: Error) => void) =>
      this.channels.listenInLine(key, clientId, heard, refused);
    const subscription = subscribe(listener, (error) => {
      subscription.close();
      this.subscribeAgain = (refused) => subscribe(() => {}, refused);
      this.refused([CHANNELS], error);
      listener({ kind: 'resync' });
    });
    return subscription;
  }

  /** Acquires a lock, or enters its line if the user may do that. */
  async enter(request: AcquireRequest): Promise<AcquireReply> {
    if (this.ifAllowed() === undefined) return this.acquisitions.acquire(request);
    try {
      return await this.acquisitions.enterLine(request);
    } catch (error) {
      if (!isDenied(error)) throw error;
      // If the user may not use the lock either, this fails, and the line is not the reason.
      const reply = await this.acquisitions.acquire(request);
      this.refused([PLACES], error);
      return reply;
    }
  }

  /** A release could not serve the line. From now on, owners of this process show that it serves none. */
  mayNotServe(): void {
    // Either right may be missing. A warning about one of them says enough.
    const rights = this.warnedOf.size > 0 ? [] : [CHANNELS, PLACES];
    this.refused(rights, new Error('a release could not serve the line'));
  }

  begun(grant: Grant): void {
    this.acquisitions.begun(grant);
  }

  /**
   * The answer to a request about places in a line.
   *
   * @param otherwise the answer if the user may not use the line, and therefore has no place in it
   */
  async answer<Reply>(reply: Promise<Reply>, otherwise: Reply): Promise<Reply> {
    try {
      return await reply;
    } catch (error) {
      if (!isDenied(error)) throw error;
      this.refused([PLACES], error);
      return otherwise;
    }
  }

  private tryAgain(): void {
    if (this.subscribeAgain === undefined) {
      this.refusedAt = undefined;
      return;
    }
    if (this.trial !== undefined) return;
    const trial = this.subscribeAgain(() => this.endTrial());
    this.trial = trial;
    trial.ready.then(() => {
      this.refusedAt = this.subscribeAgain = undefined;
      this.endTrial();
    });
  }

  private endTrial(): void {
    if (this.refusedAt !== undefined) this.refusedAt = this.options.runtime.monotonic();
    this.trial?.close();
    this.trial = undefined;
  }

  private refused(rights: readonly string[], { message, cause }: Error): void {
    const { description, runtime, onWarning } = this.options;
    this.refusedAt = runtime.monotonic();
    if (rights.every((right) => this.warnedOf.has(right))) return;
    for (const right of rights) this.warnedOf.add(right);
    onWarning(
      `${description}: the Redis user may not use the line of processes that wait for a lock, so this process waits outside it, where every release wakes all processes. Grant the missing right: ACL SETUSER <user> ${rights.join(' ')} (docs/permissions.md). This is logged once (${cause instanceof Error ? cause.message : message})`,
    );
  }
}

function isDenied(error: unknown): error is BackendError {
  return error instanceof BackendError && error.kind === 'denied';
}
