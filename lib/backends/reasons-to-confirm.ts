// Why `release: 'background'` is refused: see LockBackend.confirmsReleases.

export const QUORUM_CONFIRMS = 'on a quorum, a lock is released only when a majority has answered';
export const REPLICAS_CONFIRM =
  'with minReplicas, locks are taken on another connection than the one that releases them';
