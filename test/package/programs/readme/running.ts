import type { INestApplication } from '@nestjs/common';
import type { LockService } from 'nestjs-redis-lock';

/** What the `run` of a block is given. */
export interface Running {
  readonly app: INestApplication;
  readonly locks: LockService;
}
