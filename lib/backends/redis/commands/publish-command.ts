import type { ScriptContext } from '../calls/script-context.js';
import type { PublishCommand } from '../pubsub/publish-mode.js';

/**
 * The command by which a script notifies waiters: PUBLISH or SPUBLISH. The first call on a cluster has to ask a server:
 * the one that has `key`.
 */
export async function publishCommand({ publishMode }: ScriptContext, key: string): Promise<PublishCommand> {
  return publishMode.known ?? (await publishMode.ask(key));
}
