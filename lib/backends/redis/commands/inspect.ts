import type { LockState } from '../../lock-backend.js';
import { listOf } from '../calls/reply-shape.js';
import type { ScriptContext } from '../calls/script-context.js';
import { fairPlaces, fairQueue, fairTimeouts, fencingToken } from '../lock-keys.js';
import { scripts } from '../scripts.js';

/** What stands under a key, whatever its type. */
export async function inspect(key: string, { single, connection }: ScriptContext): Promise<LockState> {
  const keys = [key, fairQueue(key), fairTimeouts(key), fairPlaces(key), fencingToken(key)];
  const reply = await single.call(scripts['inspect-5'], keys, []);
  const [mode, held, queue, token] = listOf(reply, connection.description) as [string, unknown[], string[], unknown];
  const owners: { owner: string; remaining: number }[] = [];
  for (let n = 0; n < held.length; n += 2) {
    owners.push({ owner: String(held[n]), remaining: Number(held[n + 1]) < 0 ? -1 : Math.max(1, Number(held[n + 1])) });
  }
  return {
    mode: owners.length === 0 ? 'free' : mode === 'read' || mode === 'write' ? mode : 'exclusive',
    owners,
    queue,
    token: token === undefined || token === null ? undefined : Number(token),
  };
}

/** Frees a lock of any type. Gives the owners that it was taken from. */
export async function forceRelease(key: string, { single, publishMode }: ScriptContext): Promise<readonly string[]> {
  const publish = publishMode.known ?? (await publishMode.ask());
  const keys = [key, fairQueue(key), fairTimeouts(key), fairPlaces(key)];
  const owners = await single.call(scripts['force-release-4'], keys, [publish]);
  return Array.isArray(owners) ? owners.map(String) : [];
}
