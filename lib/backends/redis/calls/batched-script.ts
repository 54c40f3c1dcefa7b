import type { ScriptCall } from '../connection/script-call.js';
import type { Script } from '../scripts.js';

/**
 * What calls say about their node. `locks`: they ask for a lock, or for what belongs to it, so a refusal means that the
 * node does not grant locks. `notes`: they concern what clients write about themselves and for each other. A refusal,
 * for example by a Redis that is full, says nothing about locks. Only silence does.
 */
export type Subject = 'locks' | 'notes';

/** A request as a batch knows it. */
export interface Batchable {
  readonly key: string;
  /** See `ReleaseRequest`. */
  queued?(): void;
  leavesQueue?(): boolean;
}

/** What a batch needs to know about the requests that it sends together. */
export interface BatchedScript<Request extends Batchable, Reply> {
  readonly script: Script;
  /** Whether the script takes something, so that it must not be executed after the command timeout. */
  readonly limited: boolean;
  /** See `ScriptRequest`. */
  readonly moment?: number | undefined;
  /** Default: `locks`. */
  readonly subject?: Subject;
  /** The keys that an error of the whole call concerns; undefined: the call has several requests. */
  readonly subjectKeys?: readonly string[];
  /** Answers requests that were withdrawn before they were sent; undefined: they cannot be withdrawn. */
  readonly unsentReply: Reply | undefined;
  /** Whether two requests can share the arguments that are sent once per call. */
  alike(one: Request, other: Request): boolean;
  keys(requests: readonly Request[]): readonly string[];
  args(requests: readonly Request[]): readonly string[];
  /**
   * Reads the answer of one request from the reply of the call.
   *
   * @throws BackendError when this request failed; the other requests of the call may have succeeded
   */
  read(reply: unknown, index: number, request: Request, call: ScriptCall): Reply;
}
