import type { LockBackend } from '../lock-backend.js';
import type { AcquireReply, AcquireRequest, HeldType, ReleaseReply, ReleaseRequest } from '../lock-requests.js';

/** A release on one node of a quorum. */
export interface MemberReleaseRequest extends ReleaseRequest {
  /**
   * Do not publish a message. A quorum uses this to revoke an unused acquisition on single nodes, where a message would
   * wake waiters for nothing.
   */
  readonly quietly?: boolean;
}

/** What a quorum needs from each of its nodes. An engine needs only what {@link LockBackend} has. */
export interface QuorumMember extends LockBackend {
  acquire(request: AcquireRequest): Promise<AcquireReply>;

  release(request: MemberReleaseRequest): Promise<ReleaseReply>;

  /**
   * Makes later acquisitions of this lock get tokens above `token`, so that the nodes agree on one. The counter behind
   * the tokens of this type (for `fenced`, the lock's own) advances to `token`, unless it is already higher.
   *
   * @throws BackendError
   */
  raiseToken(key: string, type: HeldType, token: number): Promise<void>;
}
