import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** What the responses of Express and the replies of Fastify have in common. */
export interface HttpResponse {
  header(name: string, value: string): unknown;
  status(code: number): { send(body: string): unknown };
  /** Fastify's. */
  readonly raw?: ServerResponse;
  hijack?(): void;
}

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body?: unknown;
  readonly socket?: { readonly encrypted?: boolean };
}

/** The page loads only its own files, cannot be framed, and cannot create HTML from strings. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

/** Responds without the application's interceptors, which may wrap the result of a handler. */
export function send(response: HttpResponse, status: number, body: string, headers: Record<string, string>): void {
  for (const [name, value] of Object.entries({ ...HEADERS, ...headers })) response.header(name, value);
  response.status(status).send(body);
}

/** @param body an object, or JSON */
export function sendJson(response: HttpResponse, status: number, body: object | string): void {
  send(response, status, typeof body === 'string' ? body : JSON.stringify(body), {
    'content-type': 'application/json; charset=utf-8',
  });
}

/** Closes the connection after this response. The server closes connections with HTTP/2. */
export function lastOfConnection(response: HttpResponse): void {
  if (!('stream' in (response.raw ?? response))) response.header('connection', 'close');
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Proxies must neither compress nor buffer it.
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};

/** Responds to `HEAD` for a stream. */
export function sendStreamHead(response: HttpResponse): void {
  send(response, 200, '', STREAM_HEADERS);
}

/** A stream of server-sent events. */
export class EventStream {
  private readonly raw: ServerResponse & { readonly stream?: Duplex };
  /** Whether written data still waits for the viewer to read it. Responses of HTTP/2 have no `writableNeedDrain`. */
  private isFull = false;

  constructor(response: HttpResponse) {
    this.raw = response.raw ?? (response as unknown as ServerResponse);
    response.hijack?.();
    const { 'content-security-policy': _, ...headers } = HEADERS;
    this.raw.on('drain', () => {
      this.isFull = false;
    });
    this.raw.writeHead(200, { ...headers, ...STREAM_HEADERS });
    this.raw.flushHeaders();
  }

  /** Whether the viewer has taken what was sent before. */
  get isReady(): boolean {
    return !this.isFull && !this.raw.writableEnded && !this.isGone;
  }

  send(data: string): void {
    this.isFull = !this.raw.write(`data: ${data}\n\n`);
  }

  /** Calls the listener when the viewer has left, or immediately if that was before the stream began. */
  onClose(listener: () => void): void {
    if (this.isGone) listener();
    else this.raw.once('close', listener);
  }

  /** Closes the connection of a viewer that does not read, because the unsent data would stay in memory. */
  end(): void {
    if (this.isFull) (this.raw.stream ?? this.raw).destroy();
    else this.raw.end();
  }

  private get isGone(): boolean {
    return (this.raw.stream ?? this.raw).destroyed;
  }
}
