import type { Redis } from 'ioredis';
import { printed } from '../../benchmark/report/table.js';
import type { Table } from '../../benchmark/workloads/workload.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

/** A Redis for the tests of the surrounding `describe`, whose rows are printed as a table at the end. */
export class FleetReport {
  server!: RedisServer;
  redis!: Redis;
  readonly rows: string[][] = [];

  constructor(table: Omit<Table, 'rows'>) {
    beforeAll(async () => {
      this.server = await startRedis();
      this.redis = this.server.client();
    });
    afterAll(async () => {
      process.stdout.write(`\n${printed({ ...table, rows: this.rows })}\n`);
      await this.server?.stop();
    });
  }
}
