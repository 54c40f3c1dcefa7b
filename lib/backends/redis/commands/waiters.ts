import type { OwnerRef } from '../../lock-backend.js';
import type { ScriptContext } from '../calls/script-context.js';
import { announcedWriters, fairPlaces, fairQueue, fairTimeouts } from '../lock-keys.js';
import { scripts } from '../scripts.js';

/** Keeps the places of waiting owners: one script call for all of a lock. False: that place was gone. */
export async function refreshWaiters(
  places: readonly OwnerRef[],
  fairWaitTimeout: number,
  context: ScriptContext,
): Promise<readonly boolean[]> {
  const groups = new Map<string, OwnerRef[]>();
  for (const place of places) {
    const name = `${place.type} ${place.key}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [place]);
    else group.push(place);
  }
  const kept = new Map<OwnerRef, boolean>();
  await Promise.all(
    [...groups.values()].map(async (group) => {
      const answers = await refresh(group, fairWaitTimeout, context);
      for (const [index, place] of group.entries()) kept.set(place, Number(answers[index]) === 1);
    }),
  );
  return places.map((place) => kept.get(place) ?? false);
}

/** Gives up a place, and wakes who is next if it was this one's turn. */
export async function removeWaiter({ key, type, owner }: OwnerRef, context: ScriptContext): Promise<void> {
  if (type !== 'fair' && type !== 'write') return;
  const { single, publishMode } = context;
  const publish = publishMode.known ?? (await publishMode.ask());
  const [script, keys] =
    type === 'fair'
      ? (['leave-fair-4', [key, ...queueOf(key)]] as const)
      : (['leave-writers-2', [key, announcedWriters(key)]] as const);
  await single.call(scripts[script], keys, [publish, owner]);
}

async function refresh(
  group: readonly OwnerRef[],
  fairWaitTimeout: number,
  context: ScriptContext,
): Promise<unknown[]> {
  const { single, publishMode } = context;
  const [{ key, type }] = group;
  const owners = group.map(({ owner }) => owner);
  if (type === 'write') {
    return (await single.call(
      scripts['refresh-writers-1'],
      [announcedWriters(key)],
      [String(fairWaitTimeout), ...owners],
    )) as unknown[];
  }
  if (type !== 'fair') return [];
  const publish = publishMode.known ?? (await publishMode.ask());
  return (await single.call(
    scripts['refresh-fair-4'],
    [key, ...queueOf(key)],
    [publish, String(fairWaitTimeout), ...owners],
  )) as unknown[];
}

function queueOf(key: string): string[] {
  return [fairQueue(key), fairTimeouts(key), fairPlaces(key)];
}
