import type { HttpRequest } from './http.js';

/**
 * Whether a page of another origin (scheme, host or port) sent the request. Scripts outside a browser send none
 * of these headers.
 *
 * `Sec-Fetch-Site` is reliable behind any proxy, but browsers send it only to https and localhost. Otherwise
 * `Origin` must match the origin of the page, from the option or the header `Host`. `X-Forwarded-Host` and
 * `X-Forwarded-Proto` are ignored, because a page of another origin can send them if the application's CORS settings
 * allow it.
 *
 * @param own the origin of the page, if it is known
 */
export function isForeign({ headers, socket }: HttpRequest, own: string | undefined): boolean {
  const site = headers['sec-fetch-site'];
  if (site === 'same-origin') return false;
  if (site !== undefined && site !== 'none') return true;
  const { origin } = headers;
  if (origin === undefined) return false;
  if (typeof origin !== 'string' || !URL.canParse(origin)) return true;
  const { protocol, origin: sender } = new URL(origin);
  if (own !== undefined) return sender !== new URL(own).origin;
  // If the request arrives without TLS, a proxy may have terminated it.
  const isPossible = protocol === 'https:' || (protocol === 'http:' && socket?.encrypted !== true);
  const target = `${protocol}//${headers.host ?? headers[':authority']}`;
  return !isPossible || !URL.canParse(target) || new URL(target).origin !== sender;
}
