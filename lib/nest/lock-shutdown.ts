import type { BeforeApplicationShutdown, OnApplicationShutdown } from '@nestjs/common';
import type { LockService } from '../service/lock-service.js';

/**
 * Waits for running bodies before the application shuts down, then closes the connections that the service opened. A mock that replaces
 * the service in a test may have neither method.
 */
export class LockShutdown implements BeforeApplicationShutdown, OnApplicationShutdown {
  constructor(private readonly locks: Partial<Pick<LockService, 'drain' | 'close'>> | undefined) {}

  async beforeApplicationShutdown(): Promise<void> {
    await this.locks?.drain?.();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.locks?.close?.();
  }
}
