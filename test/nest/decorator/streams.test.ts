import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { Controller, Get, Injectable, StreamableFile } from '@nestjs/common';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { until } from '../../support/until.js';
import { startApp } from '../support/start-app.js';

/** This file. */
const SOURCE = new URL(import.meta.url);

@Injectable()
class Reports {
  constructor(private readonly locks: LockService) {}

  @DistributedLock('report')
  async stream(): Promise<Readable> {
    return createReadStream(SOURCE);
  }

  @DistributedLock('report')
  async web(): Promise<unknown> {
    return Readable.toWeb(createReadStream(SOURCE));
  }

  @DistributedLock('report')
  async file(): Promise<StreamableFile> {
    return new StreamableFile(createReadStream(SOURCE));
  }

  @DistributedLock('report')
  async inMemory(): Promise<StreamableFile> {
    return new StreamableFile(await buffer(createReadStream(SOURCE)));
  }

  @DistributedLock('report')
  async readBefore(): Promise<Readable> {
    const stream = createReadStream(SOURCE);
    await buffer(stream);
    return stream;
  }

  @DistributedLock('report')
  async *chunks(): AsyncGenerator<string> {
    yield String(await this.locks.isLocked('report'));
    yield* createReadStream(SOURCE, 'utf8');
  }
}

@Controller('reports')
class ReportsController {
  @DistributedLock('endless')
  async *content(): AsyncGenerator<Buffer> {
    for (;;) yield Buffer.alloc(65_536);
  }

  @Get()
  download(): StreamableFile {
    return new StreamableFile(Readable.from(this.content(), { objectMode: false }));
  }
}

describe('a StreamableFile of an async generator', () => {
  it('holds the lock until its client leaves', async () => {
    const app = await startApp({ controllers: [ReportsController] });
    const http = app.createNestApplication();
    await http.listen(0, '127.0.0.1');
    const client = new AbortController();
    const { body } = await fetch(`${await http.getUrl()}/reports`, { signal: client.signal });
    await body?.getReader().read();
    expect(await app.locks.isLocked('endless')).toBe(true);
    client.abort();
    await until(async () => !(await app.locks.isLocked('endless')));
    await http.close();
  });
});

describe('@DistributedLock on a method that returns a stream', () => {
  const warnings: string[] = [];
  const logger = { warn: (message: string) => void warnings.push(message), error: () => {} };
  let app: Awaited<ReturnType<typeof startApp>>;
  const start = async () => {
    app = await startApp({ providers: [Reports] }, { backend: 'memory', logger });
    warnings.length = 0; // the first start says what the memory backend is for
    return app.get(Reports);
  };

  afterEach(async () => {
    await app.close();
  });

  it.each(['stream', 'web', 'file'] as const)('warns once that it is read without the lock: %s()', async (method) => {
    const reports = await start();
    for (let call = 0; call < 2; call++) {
      const result = (await reports[method]()) as Readable | ReadableStream | StreamableFile;
      if (result instanceof Readable) result.destroy();
      else if (result instanceof StreamableFile) result.getStream().destroy();
      else await result.cancel();
    }
    expect(warnings).toEqual([
      expect.stringMatching(`^Reports.${method} returned a stream, which is read after its lock was released`),
    ]);
  });

  it('does not warn when the content is in memory or was read', async () => {
    const reports = await start();
    await reports.inMemory();
    await reports.readBefore();
    expect(warnings).toEqual([]);
  });

  it('holds the lock until a stream of its async generator was read', async () => {
    const reports = await start();
    const file = new StreamableFile(Readable.from(reports.chunks(), { objectMode: false }));
    expect((await buffer(file.getStream())).toString()).toMatch(/^trueimport/);
    expect(warnings).toEqual([]);
  });
});
