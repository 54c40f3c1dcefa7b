import type { HttpRequest } from './http.js';

/**
 * Whether a page of another origin (scheme, host or port) sent the request. Scripts outside a browser send none
 * of these headers.
 *
 * `Origin` must be one of the option `origin`, if that is set. Then `Sec-Fetch-Site` decides: it is reliable behind any
 * proxy, but browsers send it only to https and localhost. Otherwise `Origin` must match the header `Host`.
 * `X-Forwarded-Host` and `X-Forwarded-Proto` are ignored, because a page of another origin can send them if the
 * application's CORS settings allow it.
 *
 * @param own the origins of the page, empty if they are not known
 */
export function isForeign({ headers, socket }: HttpRequest, own: readonly string[]): boolean {
  const { origin } = headers;
  const sender = typeof origin === 'string' && URL.canParse(origin) ? new URL(origin) : undefined;
  const isOwn = own.some((known) => new URL(known).origin === sender?.origin);
  if (own.length > 0 && origin !== undefined && !isOwn) return true;
  const site = headers['sec-fetch-site'];
  if (site === 'same-origin') return false;
  if (site !== undefined && site !== 'none') return true;
  if (origin === undefined || isOwn) return false;
  if (sender === undefined) return true;
  // If the request arrives without TLS, a proxy may have terminated it.
  const isPossible = sender.protocol === 'https:' || (sender.protocol === 'http:' && socket?.encrypted !== true);
  const target = `${sender.protocol}//${headers.host ?? headers[':authority']}`;
  return !isPossible || !URL.canParse(target) || new URL(target).origin !== sender.origin;
}
