/** What the requests of Express and of Fastify have in common. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  /** The whole URL, where `url` is only the part below a router. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body?: unknown;
  /** The body as it was sent, if the application has the option `rawBody`. */
  readonly rawBody?: unknown;
  /** Node.js's request, in a request of Fastify. */
  readonly raw?: NodeRequest;
}

interface NodeRequest {
  /** In HTTP/2. */
  readonly stream?: { readonly endAfterHeaders?: boolean };
}

export type HeaderValue = number | string | readonly string[];

/** What the response of Express and the reply of Fastify have in common. */
export interface HttpResponse {
  readonly statusCode: number;
  /** Node.js's response, in a reply of Fastify. */
  readonly raw?: { readonly headersSent: boolean };
  readonly headersSent?: boolean;
  /** Fastify's. */
  readonly sent?: boolean;
  status(code: number): unknown;
  getHeaders(): Record<string, HeaderValue | undefined>;
  removeHeader(name: string): unknown;
  /** Fastify's. That of Express would change some values. */
  header(name: string, value: HeaderValue): unknown;
  /** Express's. */
  setHeader?(name: string, value: HeaderValue): unknown;
}

/** Whether nothing of the response can be changed any more. */
export function isSent({ raw, headersSent, sent }: HttpResponse): boolean {
  return raw?.headersSent === true || headersSent === true || sent === true;
}

export function setHeader(response: HttpResponse, name: string, value: HeaderValue): void {
  if (response.setHeader === undefined) response.header(name, value);
  else response.setHeader(name, value);
}

/** Whether the request has a body, parsed or not. */
export function hasContent(request: HttpRequest): boolean {
  const { headers, raw = request as NodeRequest } = request;
  if (headers['transfer-encoding'] !== undefined) return true;
  if (headers['content-length'] !== undefined) return headers['content-length'] !== '0';
  return raw.stream?.endAfterHeaders === false;
}
