import type { Redis } from 'ioredis';
import { messageOf } from '../../backends/redis/connection/redis-errors.js';
import { type Finding, note, ok, wrong } from './check.js';

/** As the scripts of the locks do, it uses a key that it makes from one that it was given. */
const OTHER_KEY = "return redis.call('EXISTS', KEYS[1] .. ':other')";
const WITHOUT_KEY = "return 'fine'";

/** Locks are Lua scripts. @param key with a hash tag, so that the other key is in its slot */
export async function checkScripts(master: Redis, key: string): Promise<Finding> {
  const otherKey = await failureOf(master.eval(OTHER_KEY, 1, key));
  if (otherKey !== undefined) {
    if (/NOPERM/.test(otherKey)) return note(`not known: ${otherKey}`, 'see the check of rights');
    if (/CLUSTERDOWN/.test(otherKey)) return note(`not known: ${otherKey}`, 'see the check of the cluster');
    return wrong(
      `a script was refused: ${otherKey}`,
      'allow scripts, and keys that a script was not given; on Dragonfly: --default_lua_flags=allow-undeclared-keys',
    );
  }
  const withoutKey = await failureOf(master.eval(WITHOUT_KEY, 0));
  if (withoutKey === undefined) return ok('scripts run, with and without keys');
  return note(
    `scripts run, but not without a key: ${withoutKey}`,
    'nothing: the locks give every script a key; other software may not',
  );
}

/** Of a key of another node there is no answer, but the script was accepted. */
async function failureOf(call: Promise<unknown>): Promise<string | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    const message = messageOf(error);
    return /^MOVED/.test(message) ? undefined : message;
  }
}
