import { UnsupportedMediaTypeException, type VersioningOptions, VersioningType } from '@nestjs/common';
import { LockConfigurationError } from '../engine/errors.js';
import { describeValue } from '../engine/terms/option-table.js';
import { type HttpRequest, hasContent } from './http.js';
import type { Settings } from './idempotent.options.js';
import { jsonOf } from './json-of.js';
import { hashOf } from './request-key.js';

/**
 * A hash of what makes two requests the same one: method, URL, version and content. The client's key, which is not
 * stored, is a part of it, so that nobody who reads Redis finds a short body by trying.
 *
 * @param identity the scope and the key
 *
 * @throws UnsupportedMediaTypeException when the content can't be told apart from another one
 */
export async function fingerprintOf(
  request: HttpRequest,
  identity: string,
  settings: Settings,
  versioning: VersioningOptions | undefined,
  where: string,
): Promise<string> {
  const { method, url, originalUrl = url } = request;
  const content = settings.fingerprint === undefined ? contentOf(request) : await ownContent(request, settings, where);
  return hashOf(JSON.stringify([identity, method, originalUrl, versionOf(request, versioning), content]));
}

async function ownContent(request: HttpRequest, { fingerprint }: Settings, where: string): Promise<unknown> {
  const content: unknown = await fingerprint?.(request);
  if (typeof content === 'string' && content !== '') return content;
  throw new LockConfigurationError(
    `${where} did not run, because fingerprint returned ${describeValue(content)}; it must return a string that is not empty`,
  );
}

/** What a request says about the version that it asks for. That of the URL is in the URL. */
function versionOf(request: HttpRequest, versioning: VersioningOptions | undefined): unknown {
  switch (versioning?.type) {
    case VersioningType.HEADER:
      return request.headers[versioning.header.toLowerCase()];
    case VersioningType.MEDIA_TYPE:
      return request.headers.accept;
    case VersioningType.CUSTOM:
      return versioning.extractor(request);
    default:
      return undefined;
  }
}

function contentOf(request: HttpRequest): unknown {
  const { headers, rawBody, body } = request;
  const type = headers['content-type'] ?? '';
  if (rawBody instanceof Uint8Array) return [type, hashOf(rawBody)];
  if (!hasContent(request)) return '';
  // Files are read later, or are beside the body.
  const isParsed = !/^\s*multipart\//i.test(String(type)) && wasParsed(request);
  if (isParsed && typeof body === 'string') return [type, body];
  if (isParsed && body instanceof Uint8Array) return [type, hashOf(body)];
  const json = isParsed ? jsonOf(body).text : undefined;
  if (json !== undefined) return [type, json];
  throw new UnsupportedMediaTypeException(
    'The content of this request is not read before the handler runs, so it cannot be told apart from another one. The option fingerprint of @Idempotent can',
  );
}

/** The types that NestJS parses. */
const PARSED = /^\s*application\/(json|x-www-form-urlencoded)\s*(;|$)/i;

/** Express 4 gives requests whose content no parser has read an empty body. */
function wasParsed({ body, headers }: HttpRequest): boolean {
  if (body === undefined || body === null) return false;
  const isEmpty = typeof body === 'object' && Object.keys(body).length === 0;
  return !isEmpty || PARSED.test(String(headers['content-type']));
}
