import type { HttpRequest } from './http.js';

/**
 * Whether a page of another origin sent the request: another scheme, host or port. Scripts that are no page's send none
 * of these headers.
 *
 * A browser's `Sec-Fetch-Site` is right behind any proxy, but browsers send it to https and localhost alone. Otherwise
 * `Origin` must be that of the page: the option, or the header `Host`. `X-Forwarded-Host` and `X-Forwarded-Proto` are
 * ignored, because a page of another origin can send them, where the application's CORS lets it.
 *
 * @param own the origin of the page, where it is known
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
  // Without TLS here, a proxy may have ended it.
  const isPossible = protocol === 'https:' || (protocol === 'http:' && socket?.encrypted !== true);
  const target = `${protocol}//${headers.host ?? headers[':authority']}`;
  return !isPossible || !URL.canParse(target) || new URL(target).origin !== sender;
}
