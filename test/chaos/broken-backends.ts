import type { LockBackend, Wake } from '../../lib/backends/lock-backend.js';
import { ticketOwner } from '../../lib/backends/owner-ids.js';
import type { QuorumMember } from '../../lib/backends/quorum/quorum-member.js';
import { differing } from '../support/watched/differing.js';

/** A backend that breaks one promise. Only for tests of the history checker. */
export type Breakage = (backend: LockBackend) => LockBackend;

/** Grants every third lock that is busy. */
export const grantsTwice: Breakage = (backend) => {
  let refusals = 0;
  return differing(backend, {
    async acquire(request) {
      const reply = await backend.acquire(request);
      if (reply.acquired || ++refusals % 3 !== 0) return reply;
      const { token } = await mint(backend, request.leaseTime);
      return { acquired: true, token, reserved: 0 };
    },
  });
};

/** Frees the lock, whoever asks for the release. */
export const ignoresOwner: Breakage = (backend) =>
  differing(backend, {
    async release(request) {
      const reply = await backend.release(request);
      if (!reply.released) await backend.forceRelease(request.key);
      return { ...reply, released: true };
    },
  });

/** Gives every acquisition a token that was already given to another one. */
export const repeatsTokens: Breakage = (backend) =>
  differing(backend, {
    async acquire(request) {
      const reply = await backend.acquire(request);
      return reply.acquired ? { ...reply, token: 1_000, reserved: 0 } : reply;
    },
    async acquireAll(requests) {
      const reply = await backend.acquireAll(requests);
      return reply.acquired ? { ...reply, tokens: reply.tokens.map(() => 1_000) } : reply;
    },
    async transfer(request) {
      const reply = await backend.transfer(request);
      return reply && { ...reply, token: 1_000, reserved: 0 };
    },
  });

/**
 * Reserves tokens for a whole second for each busy lock, however far that moves the clock of the tokens ahead of the
 * time.
 */
export const reservesWithoutLimit: Breakage = (backend) =>
  differing(backend, {
    async acquire(request) {
      const { key, type, reserve } = request;
      const reply = await backend.acquire(request);
      if (reply.acquired && reserve > 0) await (backend as QuorumMember).raiseToken(key, type, reply.token + 1_000_000);
      return reply;
    },
  });

/** Announces no release, and reports that leases of holders have no end. */
export const losesWakeUps: Breakage = (backend) =>
  differing(backend, {
    async acquire(request) {
      const reply = await backend.acquire(request);
      return reply.acquired ? reply : { ...reply, remaining: -1 };
    },
    subscribe: (key, type, clientId) => backend.subscribe(key, type, clientId, (_wake: Wake) => {}),
  });

/** Keeps the places of waiters that have left, and the locks of owners that have released them. */
export const keepsWhatIsReleased: Breakage = (backend) => {
  let releases = 0;
  return differing(backend, {
    async release(request) {
      if (++releases % 5 === 0) return { released: true, listeners: 0, published: false, resent: false };
      return backend.release(request);
    },
  });
};

/** Sometimes lets one more caller hold a lock than its number of permits. */
export const admitsOneMore: Breakage = (backend) => {
  let calls = 0;
  return differing(backend, {
    acquire({ permits, ...request }) {
      const more = permits !== undefined && ++calls % 3 === 0 ? 1 : 0;
      return backend.acquire({ ...request, permits: permits && permits + more });
    },
  });
};

/** Reports that it has renewed a lease, but does not renew it, so that others get the place of its holder. */
export const renewsNoLease: Breakage = (backend) => differing(backend, { renew: async () => true });

/** Frees the places of all holders when one of them releases its place. */
export const releasesEveryPlace: Breakage = (backend) =>
  differing(backend, {
    async release(request) {
      const reply = await backend.release(request);
      await backend.forceRelease(request.key);
      return reply;
    },
  });

/** Lets every third reader read beside the writer that it finds. */
export const readsBesideAWriter: Breakage = (backend) => sharesWithOthers(backend, 'read');

/** Lets every third writer write among the readers, or beside the writer, that it finds. */
export const writesAmongReaders: Breakage = (backend) => sharesWithOthers(backend, 'write');

function sharesWithOthers(backend: LockBackend, type: 'read' | 'write'): LockBackend {
  let refusals = 0;
  return differing(backend, {
    async acquire(request) {
      const reply = await backend.acquire(request);
      if (reply.acquired || request.type !== type || ++refusals % 3 !== 0) return reply;
      return { acquired: true, ...(await mint(backend, request.leaseTime)), reserved: 0 };
    },
  });
}

/** Ends the leases of all readers when one of them gives its own back. */
export const releasesEveryReader: Breakage = (backend) =>
  differing(backend, {
    async release(request) {
      const reply = await backend.release(request);
      if (request.type === 'read') await backend.forceRelease(request.key);
      return reply;
    },
  });

/** The owners of detached locks by the owners of their tickets, for {@link keepsOwnersOfDetachedLocks}. */
const detachedBy = new Map<string, string>();

/**
 * A detached lock keeps its owner, so that earlier commands of the process still have an effect if they arrive late.
 */
export const keepsOwnersOfDetachedLocks: Breakage = (backend) =>
  differing(backend, {
    async transfer(request) {
      const { key, type, from, to, leaseTime } = request;
      if (!isTicket(to)) return backend.transfer(request);
      if (!(await backend.renew({ key, type, owner: from, leaseTime }))) return undefined;
      detachedBy.set(to, from);
      return { acquired: true, ...(await mint(backend, leaseTime)), reserved: 0 };
    },
    async adopt({ key, type, clientId, secret, to, leaseTime }) {
      const from = detachedBy.get(ticketOwner(clientId, secret)) ?? '';
      const reply = await backend.transfer({ key, type, from, to, leaseTime, reserve: 0 });
      return reply ?? { acquired: false, holder: undefined };
    },
  });

/** A ticket takes the lock from any holder. */
export const acceptsUsedTickets: Breakage = (backend) =>
  differing(backend, {
    async adopt(request) {
      const reply = await backend.adopt!(request);
      const { key, type, to, leaseTime } = request;
      if (reply.acquired || reply.holder === undefined) return reply;
      return (await backend.transfer({ key, type, from: reply.holder, to, leaseTime, reserve: 0 })) ?? reply;
    },
  });

/** A lock that is detached is free. */
export const freesDetachedLocks: Breakage = (backend) =>
  differing(backend, {
    async transfer(request) {
      const { key, type, to: owner } = request;
      const reply = await backend.transfer(request);
      if (reply !== undefined && isTicket(owner)) await backend.release({ key, type, owner });
      return reply;
    },
  });

function isTicket(owner: string): boolean {
  return /:t-[0-9a-f]{40}$/.test(owner);
}

/** A token that is higher than all earlier ones. */
async function mint(backend: LockBackend, leaseTime: number): Promise<{ token: number }> {
  const key = 'mint';
  const holding = { key, type: 'reentrant', owner: 'mint:1' } as const;
  const reply = await backend.acquire({ ...holding, leaseTime, reserve: 0, waiterTimeout: 0 });
  await backend.release(holding);
  if (!reply.acquired) throw new Error('the mint is busy');
  return reply;
}
