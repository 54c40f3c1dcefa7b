import type { Redis } from 'ioredis';

const BLOCKING = /^(?:blpop|brpop|brpoplpush|blmove|blmpop|bzpopmin|bzpopmax|bzmpop|wait|waitaof|xread|xreadgroup)$/i;

/** The parts of an unanswered command of ioredis. */
interface Unanswered {
  readonly command?: { readonly name?: unknown; readonly args?: readonly unknown[] };
}

/**
 * The blocking command for whose answer a client waits, in capitals. ioredis keeps unanswered commands in a queue, which
 * is no part of its documented interface. So everything is checked.
 */
export function blockingCommandOf(client: Redis): string | undefined {
  const { commandQueue } = client as unknown as { commandQueue?: { peekFront?(): Unanswered | undefined } };
  const { name, args = [] } = commandQueue?.peekFront?.()?.command ?? {};
  if (typeof name !== 'string' || !BLOCKING.test(name)) return undefined;
  if (!/^xread/i.test(name)) return name.toUpperCase();
  return args.some((word) => /^block$/i.test(String(word))) ? `${name.toUpperCase()} BLOCK` : undefined;
}
