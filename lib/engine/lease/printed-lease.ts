import type { Lease } from '../terms/lease.js';

/** What logs show of a lease. */
export function printedLease(
  lease: Pick<Lease, 'name' | 'names' | 'owner' | 'owners' | 'tokens' | 'held'> & { type?: string },
): object {
  const { name, names, owner, owners, tokens, type, held } = lease;
  if (names.length > 1)
    return { names, owners: Object.fromEntries(owners), tokens: Object.fromEntries(tokens), type, held };
  const [token] = tokens.values();
  return { name, owner, token, type, held };
}
