import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { AppModule } from '../../sample-app/app.module.js';
import { until } from '../support/until.js';

interface ShopOptions {
  /** Default: none, so that locks and stock are in memory. */
  readonly redisUrl?: string;
  readonly overrides?: readonly { readonly provide: Type; readonly useValue: unknown }[];
}

type Type = abstract new (...args: never[]) => unknown;

/** The sample app on a free loopback port. */
export async function openShop({ redisUrl, overrides = [] }: ShopOptions = {}): Promise<TestShop> {
  const before = process.env.REDIS_URL;
  process.env.REDIS_URL = redisUrl ?? '';
  try {
    const builder = Test.createTestingModule({ imports: [AppModule] });
    for (const { provide, useValue } of overrides) builder.overrideProvider(provide).useValue(useValue);
    const module = await builder.compile();
    const app = module.createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    return new TestShop(app, await app.getUrl());
  } finally {
    if (before === undefined) delete process.env.REDIS_URL;
    else process.env.REDIS_URL = before;
  }
}

export class TestShop {
  constructor(
    readonly app: INestApplication,
    private readonly url: string,
  ) {}

  async request<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: T; headers: Headers }> {
    const response = await fetch(this.url + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    return {
      status: response.status,
      body: text === '' ? (undefined as T) : JSON.parse(text),
      headers: response.headers,
    };
  }

  async put(sku: string, quantity: number): Promise<void> {
    // On a slow machine, the first connection takes longer than the application waits.
    await until(async () => (await this.request('PUT', `/stock/${sku}`, { quantity })).status === 200);
  }

  async quantityOf(sku: string): Promise<number> {
    return (await this.request<{ quantity: number }>('GET', `/stock/${sku}`)).body.quantity;
  }

  async close(): Promise<void> {
    await this.app.close();
  }
}
