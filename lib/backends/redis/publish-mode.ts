import type { RedisConnection } from './redis-connection.js';

export type PublishCommand = 'PUBLISH' | 'SPUBLISH';

/**
 * Whether messages are published in one shard of a cluster or in all of it. `auto` does as Redisson does, so that both hear each
 * other: sharded in a cluster whose servers can. That has to be asked of a server once.
 */
export class PublishMode {
  private found: PublishCommand | undefined;
  private asking: Promise<PublishCommand> | undefined;

  constructor(
    private readonly connection: RedisConnection,
    setting: 'auto' | 'on' | 'off',
  ) {
    if (setting !== 'auto') this.found = setting === 'on' ? 'SPUBLISH' : 'PUBLISH';
    else if (!connection.isCluster) this.found = 'PUBLISH';
  }

  /** Undefined until a server was asked. */
  get known(): PublishCommand | undefined {
    return this.found;
  }

  /** Rejects when no server answers; another call asks again. */
  ask(): Promise<PublishCommand> {
    this.asking ??= this.connection.knows('spublish').then(
      (sharded) => {
        this.found = sharded ? 'SPUBLISH' : 'PUBLISH';
        return this.found;
      },
      (error: unknown) => {
        this.asking = undefined;
        throw error;
      },
    );
    return this.asking;
  }
}
