import type { ScriptContext } from '../calls/script-context.js';
import type { PublishCommand } from '../pubsub/publish-mode.js';

/**
 * The command with which a script notifies waiters: PUBLISH or SPUBLISH. On a cluster, the first call has to ask the
 * server that has `key`.
 */
export async function publishCommand({ publishMode }: ScriptContext, key: string): Promise<PublishCommand> {
  return publishMode.known ?? (await publishMode.ask(key));
}
