import type { BeforeApplicationShutdown, OnApplicationShutdown } from '@nestjs/common';
import type { LockService } from '../service/lock-service.js';

/** Lets running bodies end before the application goes down, then closes what the service opened. */
export class LockShutdown implements BeforeApplicationShutdown, OnApplicationShutdown {
  constructor(private readonly locks: LockService) {}

  async beforeApplicationShutdown(): Promise<void> {
    await this.locks.drain();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.locks.close();
  }
}
