import type {
  AcquireRequest,
  BackendError,
  LockBackend,
  OwnerRef,
  WaiterRef,
} from '../../../../lib/backends/lock-backend.js';
import type { QuorumMember } from '../../../../lib/backends/quorum/quorum-member.js';
import { differing } from '../../../support/watched/differing.js';
import type { LinkTrace, Subject } from './link-trace.js';

/** Tells a trace what a process asks of its backend, and what it is answered. */
export function tracedBackend(backend: LockBackend, process: string, trace: LinkTrace): LockBackend {
  async function tell<T>(subject: Subject, ask: () => Promise<T>): Promise<T> {
    const request = trace.asked(process, subject);
    const answer = ask();
    answer.then(
      (reply) => request.answered(reply),
      ({ outcome }: BackendError) => request.failed(outcome === 'refused' ? 'refused' : 'unknown'),
    );
    return answer;
  }
  const allowed = <R extends { readonly nonce?: string | undefined }>(request: R) =>
    trace.knowsGrants ? request : withoutNonce(request);

  return differing<QuorumMember>(backend as QuorumMember, {
    // The specifications know nothing of these.
    waits: undefined,
    flights: undefined,
    directory: undefined,
    acquire: (request) => tell(acquisition(request), () => backend.acquire(allowed(request))),
    acquireAll: (requests) => {
      const [{ owner }] = requests;
      const keys = requests.map(({ key }) => key);
      const types = requests.map(({ type }) => type);
      return tell({ kind: 'acquire-all', keys, types, owner }, () => backend.acquireAll(requests));
    },
    release: (request) => tell({ kind: 'release', ...owned(request) }, () => backend.release(request)),
    renew: (request) =>
      tell({ kind: 'renew', ...owned(request), leaseTime: request.leaseTime }, () => backend.renew(request)),
    transfer: (request) => {
      const { key, type, from, to: owner, leaseTime } = request;
      return tell({ kind: 'transfer', key, type, owner, from, leaseTime }, () => backend.transfer(request));
    },
    raiseToken: (key, type, token) =>
      tell({ kind: 'raise', key, token }, () => (backend as QuorumMember).raiseToken(key, type, token)),
    refreshWaiters: (places, waiterTimeout, ...more) => {
      const [{ key }] = places;
      if (places.some((place) => place.key !== key)) throw new Error('places of several locks are not traced');
      const sent = places.map(allowed);
      const owners = places.map(({ owner }) => owner);
      const nonces = sent.map(({ nonce }: WaiterRef) => nonce);
      return tell({ kind: 'keep', key, owners, nonces, waiterTimeout }, () =>
        backend.refreshWaiters(sent, waiterTimeout, ...more),
      );
    },
    removeWaiter: (place) =>
      tell({ kind: 'leave', key: place.key, owner: place.owner }, () => backend.removeWaiter(place)),
    forceRelease: (key, expected) => tell({ kind: 'force', key }, () => backend.forceRelease(key, expected)),
  });
}

function owned({ key, type, owner }: OwnerRef) {
  return { key, type, owner };
}

function acquisition(request: AcquireRequest): Subject {
  const { leaseTime, waiterTimeout, pastLine, permits, nonce, grantLease } = request;
  return {
    kind: 'acquire',
    ...owned(request),
    leaseTime,
    waiterTimeout,
    pastLine: pastLine === true,
    permits: permits ?? 0,
    nonce,
    grantLease: grantLease ?? leaseTime,
  };
}

/** A request whose nonce comes back in no message. A request for a lock is the same object, because it may still change. */
function withoutNonce<R extends { readonly nonce?: string | undefined }>(request: R): R {
  return Object.create(request, { nonce: { value: undefined } }) as R;
}
