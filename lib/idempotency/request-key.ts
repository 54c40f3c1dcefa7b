import { createHash, randomUUID } from 'node:crypto';
import { BadRequestException } from '@nestjs/common';
import { LockConfigurationError } from '../engine/errors.js';
import { describeValue } from '../engine/terms/option-table.js';
import type { HttpRequest } from './http.js';
import type { Scope, Settings } from './idempotent.options.js';

/** Where a request keeps its key. It is registered, because a process may have loaded two copies of the library. */
const KEY = Symbol.for('nestjs-redis-lock.idempotency-key');

/** 8 to 255 visible characters. */
const VISIBLE = /^[\x21-\x7e]{8,255}$/;
/** The string of RFC 9651, which the IETF draft prescribes. */
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;

/**
 * A key for this request that is the same for each of its repetitions: pass it on to your payment provider, which then
 * charges once even if the handler runs twice. Two clients that use the same `Idempotency-Key` have different ones.
 *
 * ```ts
 * await this.stripe.charges.create({ amount }, { idempotencyKey: idempotencyKey(request) });
 * ```
 *
 * @returns 43 letters, digits, `-` and `_`. For a request without a key (`required: false`), it is a random text, the
 *   same for each call with this request
 * @throws LockConfigurationError when the handler of the request is not {@link Idempotent}
 * @publicApi
 */
export function idempotencyKey(request: object): string {
  const key = (request as { [KEY]?: string })[KEY];
  if (key !== undefined) return key;
  throw new LockConfigurationError(
    'idempotencyKey(): the request has no key, because its handler has no @Idempotent. Pass the request that the handler gets with @Req()',
  );
}

/** Keeps the key of a request for {@link idempotencyKey}. */
export function rememberKey(request: object, key: string = hashOf(randomUUID())): void {
  Object.defineProperty(request, KEY, { value: key, configurable: true });
}

/**
 * The key that the client has sent; undefined if there is none and none is required.
 *
 * @throws BadRequestException for one that is missing or malformed
 */
export function sentKey({ headers }: HttpRequest, { header, required }: Settings): string | undefined {
  const sent = headers[header.toLowerCase()];
  if (sent === undefined && !required) return undefined;
  // Node.js joins two headers by a comma and a space, which no key has.
  const text = typeof sent === 'string' ? sent.trim() : '';
  const key = text.startsWith('"') ? QUOTED.exec(text)?.[1].replace(/\\(.)/g, '$1') : text;
  if (key !== undefined && VISIBLE.test(key)) return key;
  throw new BadRequestException(
    `Send the header ${header} once, with 8 to 255 visible characters: a new key for each request, and the same key for its repetitions`,
  );
}

/** Whose request it is, as a JSON text. @throws LockConfigurationError when `scope` returns nothing that says it */
export async function scopeText(request: unknown, { scope }: Settings, where: string): Promise<string> {
  const whose: unknown = await scope(request);
  if (!saysSomething(whose))
    throw new LockConfigurationError(
      `${where} did not run, because scope returned ${describeValue(whose)}; it must return a string that is not empty, a finite number or a bigint. Is the guard missing that sets what it reads?`,
    );
  return typeof whose === 'string' ? JSON.stringify(whose) : String(whose);
}

function saysSomething(whose: unknown): whose is Scope {
  if (typeof whose === 'string') return whose.trim() !== '';
  return typeof whose === 'bigint' || Number.isFinite(whose);
}

export function hashOf(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('base64url');
}
