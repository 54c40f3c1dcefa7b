import type { ServerResponse } from 'node:http';

/** What the responses of Express and the replies of Fastify have in common. */
export interface HttpResponse {
  header(name: string, value: string): unknown;
  status(code: number): { send(body: string): unknown };
  /** Fastify's. */
  readonly raw?: ServerResponse;
  hijack?(): void;
}

export interface HttpRequest {
  readonly url: string;
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body?: unknown;
}

/** Nothing else than what this page brings is loaded, nobody frames it, and no text becomes markup. */
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

/** Answers without the application's interceptors, which may put other things around what a handler returns. */
export function send(response: HttpResponse, status: number, body: string, headers: Record<string, string>): void {
  for (const [name, value] of Object.entries({ ...HEADERS, ...headers })) response.header(name, value);
  response.status(status).send(body);
}

export function sendJson(response: HttpResponse, status: number, body: object): void {
  send(response, status, JSON.stringify(body), { 'content-type': 'application/json; charset=utf-8' });
}

/** A stream of server-sent events. */
export class EventStream {
  private readonly raw: ServerResponse;

  constructor(response: HttpResponse) {
    this.raw = response.raw ?? (response as unknown as ServerResponse);
    response.hijack?.();
    const { 'content-security-policy': _, ...headers } = HEADERS;
    this.raw.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      // Neither compressed nor collected on the way.
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    this.raw.flushHeaders();
  }

  /** Whether the viewer has taken what was sent before. */
  get isReady(): boolean {
    return !this.raw.writableNeedDrain && !this.raw.writableEnded && !this.raw.destroyed;
  }

  send(data: string): void {
    this.raw.write(`data: ${data}\n\n`);
  }

  /** Calls the listener when the viewer has gone: at once, if that was before the stream began. */
  onClose(listener: () => void): void {
    if (this.raw.destroyed) listener();
    else this.raw.once('close', listener);
  }

  end(): void {
    this.raw.end();
  }
}
