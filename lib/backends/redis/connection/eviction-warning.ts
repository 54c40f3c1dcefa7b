import type { Client } from './client-source.js';
import { ScriptCommand, sendOn } from './script-command.js';

/** A server that evicts keys when its memory is full may evict locks, and grant them again while they are held. It is asked once. */
export function warnOfEviction(client: Client, server: string, warn: (message: string) => void): void {
  sendOn(client, new ScriptCommand('info', ['memory'])).then(
    (reply) => {
      const limit = /^maxmemory:(\d+)/m.exec(String(reply))?.[1] ?? '0';
      const policy = /^maxmemory_policy:(\S+)/m.exec(String(reply))?.[1] ?? 'noeviction';
      if (limit === '0' || policy === 'noeviction') return;
      warn(
        `${server}: maxmemory-policy is '${policy}', so Redis may evict locks that are held, and grant them twice. Set it to 'noeviction', or give locks a Redis of their own`,
      );
    },
    () => {}, // no right to ask
  );
}
