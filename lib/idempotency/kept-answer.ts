import { validateHeaderName, validateHeaderValue } from 'node:http';
import * as nest from '@nestjs/common';
import { HttpException } from '@nestjs/common';
import { type HeaderValue, type HttpResponse, isSent, setHeader } from './http.js';
import type { Settings } from './idempotent.options.js';
import { jsonOf } from './json-of.js';

/** The answer of a handler, as it is stored. */
export interface Answer {
  readonly status: number;
  /** What the run has changed: the new values, or null for headers that it has removed. */
  readonly headers: Readonly<Record<string, string | readonly string[] | null>>;
  /** After JSON. Absent for a handler that has returned nothing. */
  readonly body?: unknown;
  /** For an error, the name of NestJS's class. */
  readonly error?: string;
}

/** What is stored: whose answer it is, and the answer. Without one, it is the tombstone of a run that never repeats. */
export interface Entry {
  readonly fingerprint: string;
  readonly answer?: Answer;
}

/** What a handler has returned or thrown. */
export type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** Headers of one client, of one connection, or of one copy of the answer. */
const NEVER_KEPT = new Set([
  'set-cookie',
  'set-cookie2',
  'content-length',
  'date',
  'idempotency-replayed',
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade'],
]);

/** These ask the client to send the request again. */
const TRY_AGAIN = [408, 423, 425, 429];

// ── Writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** An outcome as text to store, or why it can't be stored. */
export type Kept =
  | { readonly text: string; readonly answer: Answer; readonly problem?: undefined }
  | { readonly problem: string; readonly hasInstance?: boolean };

/** @param before the headers of the response before the run */
export function keep(outcome: Outcome, before: Headers, response: HttpResponse, settings: Settings): Kept {
  if (isSent(response)) return { problem: 'the handler has sent the response itself' };
  const result = 'error' in outcome ? answerOfError(outcome.error) : answerOfValue(outcome.value, response);
  if ('problem' in result) return result;
  const json = jsonOf({ ...result, headers: changedHeaders(before, response) } satisfies Answer);
  if (json.text === undefined) return json;
  try {
    const answer = checkAnswer(JSON.parse(json.text));
    const text: unknown = settings.serialize(json.text);
    if (typeof text !== 'string') return { problem: 'serialize did not return a string' };
    const size = Buffer.byteLength(text);
    if (size <= settings.maxSize) return { text, answer };
    return { problem: `it has ${size} bytes, more than maxSize (${settings.maxSize})` };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

type Refused = { readonly problem: string };

function answerOfValue(value: unknown, { statusCode: status }: HttpResponse): Omit<Answer, 'headers'> | Refused {
  if (value === undefined) return { status };
  if (typeof value === 'function' || typeof value === 'symbol') return { problem: `it is a ${typeof value}` };
  if (ArrayBuffer.isView(value) || isStream(value)) return { problem: 'it is a stream or a buffer' };
  return { status, body: value };
}

function isStream(value: unknown): boolean {
  const { pipe, getStream, getReader, [Symbol.asyncIterator]: iterate } = (value ?? {}) as Record<PropertyKey, unknown>;
  return [pipe, getStream, getReader, iterate].some((method) => typeof method === 'function');
}

function answerOfError(error: unknown): Omit<Answer, 'headers'> | Refused {
  const status = statusOf(error);
  if (status === undefined) return { problem: 'only an HttpException can be repeated' };
  const body = error instanceof HttpException ? error.getResponse() : { statusCode: status, message: messageOf(error) };
  try {
    // No serializer sees errors, so they may hold instances.
    return { status, body: JSON.parse(JSON.stringify(body)), error: nestClassOf(error) };
  } catch (cause) {
    return { problem: `it is not JSON: ${String(cause)}` };
  }
}

/** The status that NestJS answers this error with; undefined for the 500 of errors that it does not know. */
function statusOf(error: unknown): number | undefined {
  if (error instanceof HttpException) return error.getStatus();
  const { statusCode } = (error ?? {}) as { statusCode?: unknown };
  return isErrorStatus(statusCode) && messageOf(error) ? statusCode : undefined;
}

function messageOf(error: unknown): unknown {
  return (error as { message?: unknown } | undefined)?.message;
}

/** Whether an error is an answer. The handler has run, so an error in `keepErrors` must not make it run again. */
export function isAnswer(error: unknown, { keepErrors }: Settings): boolean {
  const status = statusOf(error) ?? 500;
  const byDefault = status < 500 && !TRY_AGAIN.includes(status);
  try {
    return keepErrors === undefined ? byDefault : Boolean(keepErrors(error, byDefault));
  } catch {
    return true;
  }
}

export type Headers = Readonly<Record<string, HeaderValue | undefined>>;

function changedHeaders(before: Headers, response: HttpResponse): Answer['headers'] {
  const after: Headers = response.getHeaders();
  const changed: Record<string, string | string[] | null> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const value = after[name];
    if (NEVER_KEPT.has(name) || JSON.stringify(value) === JSON.stringify(before[name])) continue;
    changed[name] = value === undefined ? null : Array.isArray(value) ? value.map(String) : String(value);
  }
  return changed;
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export function entryText(fingerprint: string, text?: string): string {
  return text === undefined ? fingerprint : `${fingerprint}\n${text}`;
}

/** Reads what is stored, which somebody else may have written. @throws Error when it is no entry */
export function readEntry(text: string, { deserialize }: Settings): Entry {
  const [, fingerprint, rest] = /^([\w-]{43})(?:\n([\s\S]*))?$/.exec(text) ?? [];
  if (fingerprint === undefined) throw new Error('it has no fingerprint');
  return rest === undefined ? { fingerprint } : { fingerprint, answer: checkAnswer(JSON.parse(deserialize(rest))) };
}

function checkAnswer(answer: Answer): Answer {
  const { status, headers, error } = answer;
  if (!Number.isInteger(status) || status < 200 || status > 599) throw new Error('its status is none of HTTP');
  if (error !== undefined && typeof error !== 'string') throw new Error('its error has no class');
  if (typeof headers !== 'object' || headers === null) throw new Error('it has no headers');
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name);
    if (NEVER_KEPT.has(name.toLowerCase())) throw new Error(`it has the header ${name}`);
    for (const part of value === null ? [] : [value].flat()) {
      if (typeof part !== 'string') throw new Error(`its header ${name} is no string`);
      validateHeaderValue(name, part);
    }
  }
  return answer;
}

function isErrorStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599;
}

// ── Giving ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Makes a response the one of the first request. */
export function repeatOn(response: HttpResponse, { status, headers }: Answer): void {
  if (isSent(response)) return;
  response.status(status);
  for (const [name, value] of Object.entries(headers)) {
    if (value === null) response.removeHeader(name);
    else setHeader(response, name, value);
  }
  setHeader(response, 'Idempotency-Replayed', 'true');
}

/** Returns or throws what the handler has. The first request gets the same as repetitions, so that filters see the same. */
export function give({ status, body, error }: Answer): unknown {
  if (error === undefined) return body;
  const Type = (nest as unknown as Record<string, unknown>)[error];
  if (isNestClass(Type) && typeof body === 'object' && body !== null && !Array.isArray(body)) {
    const same = new Type(body);
    if (same.getStatus() === status) throw same;
  }
  throw new HttpException(body as string | Record<string, unknown>, status);
}

/** The class of NestJS that an error is an instance of. A class of the application is not known where it is repeated. */
function nestClassOf(error: unknown): string {
  for (let type = (error as object).constructor; typeof type === 'function'; type = Object.getPrototypeOf(type))
    if ((nest as unknown as Record<string, unknown>)[type.name] === type) return type.name;
  return HttpException.name;
}

function isNestClass(type: unknown): type is new (response: unknown) => HttpException {
  return typeof type === 'function' && type !== HttpException && type.prototype instanceof HttpException;
}
