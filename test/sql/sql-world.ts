import { randomUUID } from 'node:crypto';
import type { LockBackend } from '../../lib/backends/lock-backend.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../lib/service/redis-lock-options.js';
import type { RowLocksOptions } from '../../lib/sql.js';
import { RecordingLogger } from '../support/lock-world.js';
import { type SqlServer, type SqlServerKind, startSqlServer } from '../support/servers/sql/sql-server.js';
import { SQL_LOCKS, type SqlLocks } from './sql-locks.js';

/** One server for the tests of a `describe`, and services on it that are closed after each test. */
export class SqlWorld {
  server!: SqlServer;
  readonly logger = new RecordingLogger();
  private readonly services: LockService[] = [];

  constructor(
    readonly kind: SqlServerKind,
    readonly locks: SqlLocks,
  ) {}

  /** The prefix of the tables' names. */
  get table(): string {
    return this.locks === 'rowLocks' ? 'distributed_lock' : 'advisory_lock';
  }

  /** A service of its own, as another process would have it. */
  service(options: Partial<RowLocksOptions> = {}, settings: Partial<RedisLockOptions> = {}): LockService {
    const service = createLockService({
      backend: this.backend(options),
      logger: this.logger,
      waitTime: Number.POSITIVE_INFINITY,
      shutdownTimeout: 100,
      ...settings,
    });
    this.services.push(service);
    return service;
  }

  backend(options: Partial<RowLocksOptions> = {}): LockBackend {
    const url = options.pool === undefined ? this.server.url : undefined;
    return SQL_LOCKS[this.locks]({ url, createTable: true, ...options });
  }

  name(): string {
    return `order:${randomUUID()}`;
  }

  async tidy(): Promise<void> {
    await Promise.all(this.services.splice(0).map((service) => service.close()));
  }
}

export function openSqlWorld(kind: SqlServerKind, locks: SqlLocks = 'rowLocks'): SqlWorld {
  const world = new SqlWorld(kind, locks);
  beforeAll(async () => {
    world.server = await startSqlServer(kind);
  }, 60_000);
  afterEach(() => world.tidy());
  afterAll(() => world.server?.stop());
  return world;
}
