import type { Removal } from '../../lock-backend.js';

/** Reads the message about a forced release; undefined when it is not one of ours. */
export function parseRemoval(text: string): Removal | undefined {
  let message: Partial<Removal> | null;
  try {
    message = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { key, owners } = message ?? {};
  if (typeof key !== 'string' || !Array.isArray(owners)) return undefined;
  return { key, owners: owners.filter((owner) => typeof owner === 'string') };
}
