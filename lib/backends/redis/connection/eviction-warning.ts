import type { Client } from '../client/client.js';
import { ScriptCommand, sendOn } from './script-command.js';

/** Asks a server once whether it evicts keys when its memory is full: it could evict a lock that is held, and grant it again. */
export function warnOfEviction(client: Client, server: string, warn: (message: string) => void): void {
  sendOn(client, new ScriptCommand('info', ['memory'])).then(
    (reply) => {
      const limit = /^maxmemory:(\d+)/m.exec(String(reply))?.[1] ?? '0';
      const policy = /^maxmemory_policy:(\S+)/m.exec(String(reply))?.[1] ?? 'noeviction';
      if (limit === '0' || policy === 'noeviction') return;
      warn(
        `${server}: maxmemory-policy is '${policy}', so Redis may evict locks that are held and grant them twice. Set it to 'noeviction', or use a separate Redis for locks`,
      );
    },
    () => {}, // not permitted to ask
  );
}
