import { type Reply, StatusReply } from './redis-error.js';

// biome-ignore lint/suspicious/noControlCharactersInRegex: the question is whether a text has other than ASCII
const ASCII = /^[\x00-\x7f]*$/;

/** One character for each byte in UTF-8, as Lua counts and compares. */
export function toBytes(text: string): string {
  return ASCII.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** A reply with its texts as the client has them. */
export function toText(reply: Reply): unknown {
  if (typeof reply === 'string') return ASCII.test(reply) ? reply : Buffer.from(reply, 'latin1').toString('utf8');
  if (reply instanceof StatusReply) return reply.text;
  return Array.isArray(reply) ? reply.map(toText) : reply;
}
