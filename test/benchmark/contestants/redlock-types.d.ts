// Its package.json hides its types from TypeScript's nodenext resolution.
declare module 'redlock' {
  import type { Redis } from 'ioredis';

  export interface Lock {
    release(): Promise<unknown>;
  }

  export interface Settings {
    readonly retryCount: number;
    readonly retryDelay: number;
    readonly retryJitter: number;
  }

  export default class Redlock {
    constructor(clients: readonly Redis[], settings: Settings);
    acquire(resources: readonly string[], duration: number): Promise<Lock>;
  }
}
