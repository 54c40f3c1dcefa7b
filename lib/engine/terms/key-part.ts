import { MAX_KEY_BYTES } from './lock-name.js';

/** Why a value cannot be part of a lock's name; `undefined` when it can. */
export function whyNotKeyPart(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return whyNotText(value);
    case 'number':
      return Number.isFinite(value) ? undefined : `is ${value}`;
    case 'bigint':
    case 'boolean':
      return undefined;
    case 'object':
      return value === null
        ? 'is null'
        : `is an object (${nameOfClass(value)}); name a property of it that is a string or a number`;
    default:
      return typeof value === 'undefined' ? 'is undefined' : `is a ${typeof value}`;
  }
}

/**
 * The text of a part that comes from data. `%`, `:`, `{`, `}` and control characters are percent-encoded, so that one
 * part cannot imitate two, or choose the slot in a cluster.
 */
export function toKeyPart(value: string | number | bigint | boolean): string {
  const text = String(value);
  return SPECIAL.test(text) ? text.replace(SPECIALS, encodeURIComponent) : text;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds control characters
const SPECIAL = /[%:{}\u0000-\u001f\u007f-\u009f]/;
const SPECIALS = new RegExp(SPECIAL, 'g');
const SURROGATE = /[\ud800-\udfff]/;
const LONE_SURROGATE = /\p{Surrogate}/u;

function whyNotText(text: string): string | undefined {
  if (text === '') return 'is an empty string';
  if (text.length > MAX_KEY_BYTES)
    return `is a string of ${text.length} characters; a whole key has at most ${MAX_KEY_BYTES} bytes`;
  return SURROGATE.test(text) && LONE_SURROGATE.test(text)
    ? 'is a string with half a character (a lone surrogate) in it'
    : undefined;
}

function nameOfClass(value: object): string {
  const name: unknown = value.constructor?.name;
  return typeof name === 'string' && name !== '' ? name : 'without a class';
}
