// Declares what is used of packages that only `npm run bench` installs, so that the whole repository compiles. The
// benchmark itself is checked against the types of the packages.
declare module '@microfleet/ioredis-lock' {
  export interface Lock {
    release(): Promise<unknown>;
  }
  export function createLock(...settings: unknown[]): { acquire(key: string): Promise<Lock> };
}

declare module '@redis-kit/lock' {
  export interface RedlockInstance {
    release(): Promise<unknown>;
  }
  export class Redlock {
    constructor(...settings: unknown[]);
    acquire(key: string, duration: number): Promise<RedlockInstance | null>;
  }
}

declare module 'redis';

declare module 'redis-semaphore' {
  export class Mutex {
    constructor(...settings: unknown[]);
    acquire(): Promise<unknown>;
    tryAcquire(): Promise<boolean>;
    release(): Promise<unknown>;
  }
}

declare module 'simple-redis-mutex' {
  export type ReleaseFunc = () => Promise<unknown>;
  export function lock(...settings: unknown[]): Promise<ReleaseFunc>;
}
