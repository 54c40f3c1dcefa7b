import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:http';
import type { ModuleMetadata, NestApplicationOptions } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { LockService, RedisLockModule, type RedisLockOptions } from 'nestjs-redis-lock';

export const PLATFORMS = ['Express', 'Fastify'] as const;
export type Platform = (typeof PLATFORMS)[number];

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: unknown;
}

export interface Sent {
  readonly key?: string | readonly string[];
  readonly body?: unknown;
  readonly method?: string;
  readonly headers?: Record<string, string>;
}

/** One process of an application, as its clients see it. */
export class Replica {
  readonly url: Promise<string>;

  constructor(
    readonly app: NestExpressApplication,
    readonly locks: LockService,
  ) {
    this.url = app.getUrl();
  }

  /** By node:http, which can send a header twice, and shows all headers. */
  async send(path: string, { key, body, method = 'POST', headers }: Sent = {}): Promise<Answer> {
    const isText = typeof body === 'string';
    const content = body === undefined ? undefined : isText ? body : JSON.stringify(body);
    const url = `${await this.url}${path}`;
    return new Promise((resolve, reject) => {
      const outgoing = request(url, { method, headers: { connection: 'close', ...headers } }, async (response) => {
        const parts: Buffer[] = [];
        for await (const part of response) parts.push(part);
        const text = Buffer.concat(parts).toString();
        const isJson = response.headers['content-type']?.includes('json');
        const { statusCode: status = 0 } = response;
        resolve({ status, headers: response.headers, text, body: isJson && text !== '' ? JSON.parse(text) : text });
      });
      outgoing.on('error', reject);
      if (key !== undefined) outgoing.setHeader('idempotency-key', key);
      if (content !== undefined) {
        if (!outgoing.hasHeader('content-type')) outgoing.setHeader('content-type', 'application/json');
        outgoing.setHeader('content-length', Buffer.byteLength(content));
      }
      outgoing.end(content);
    });
  }
}

/** Starts an application as one of its replicas would run it. */
export async function startReplica(
  platform: Platform,
  locks: RedisLockOptions,
  { imports = [], ...metadata }: ModuleMetadata,
  prepare: (app: NestExpressApplication) => void = () => {},
  options: NestApplicationOptions = {},
): Promise<Replica> {
  const module = await Test.createTestingModule({
    imports: [RedisLockModule.forRoot({ shutdownTimeout: 10, ...locks }), ...imports],
    ...metadata,
  }).compile();
  const adapter = platform === 'Express' ? new ExpressAdapter() : new FastifyAdapter();
  const app = module.createNestApplication<NestExpressApplication>(adapter as ExpressAdapter, options);
  app.useLogger(false);
  prepare(app);
  await app.listen(0, '127.0.0.1');
  return new Replica(app, app.get(LockService));
}
