import dns from 'node:dns';
import { createSecureContext } from 'node:tls';
import { jest } from '@jest/globals';
import { MemoryBackend, MemoryStore, nodeRuntime } from '../../lib/core.js';
import { LockConfigurationError } from '../../lib/engine/errors.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { RedisLockOptions } from '../../lib/service/redis-lock-options.js';
import { cloneSettings } from '../../lib/standby/clone-settings.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';

const HOST = { host: '127.0.0.1', port: 1 };
const CANNOT = 'which cannot be given to another thread';

/** Connections with settings that no other thread can have, and what they are called. */
const REFUSED: Readonly<Record<string, RedisLockOptions>> = {
  'connection.Connector': { connection: { ...HOST, Connector: class {} as never } },
  'connection.tls.checkServerIdentity': { connection: { ...HOST, tls: { checkServerIdentity: () => undefined } } },
  'connection.tls.lookup': { connection: { ...HOST, tls: { lookup: dns.lookup as never } } },
  'connection.tls.secureContext': { connection: { ...HOST, tls: { secureContext: createSecureContext() } } },
  'connection.natMap': {
    connection: { sentinels: [HOST], name: 'mymaster', natMap: (() => HOST) as never },
  },
  'connection.options.dnsLookup': {
    connection: { nodes: [HOST], options: { dnsLookup: (address, callback) => callback(null, address) } },
  },
  'connection.socket.lookup': { connection: { client: 'node-redis', socket: { ...HOST, lookup: () => {} } } },
  'connection.credentialsProvider': {
    connection: {
      client: 'node-redis',
      socket: HOST,
      credentialsProvider: { type: 'async-credentials-provider', credentials: async () => ({}) },
    } as never,
  },
  'connection.nodeAddressMap': {
    connection: { client: 'node-redis', rootNodes: [{ socket: HOST }], nodeAddressMap: () => undefined },
  },
  'quorum[1].tls.checkServerIdentity': {
    quorum: [
      'redis://127.0.0.1:1',
      { ...HOST, port: 2, tls: { checkServerIdentity: () => undefined } },
      'redis://127.0.0.1:3',
    ],
  },
};

describe('keepWhileBlocked', () => {
  const refusalOf = (options: RedisLockOptions): string => {
    try {
      createLockService({ keepWhileBlocked: '2m', ...options });
    } catch (error) {
      expect(error).toBeInstanceOf(LockConfigurationError);
      return (error as Error).message;
    }
    throw new Error('it was not refused');
  };

  it.each(Object.entries(REFUSED))('refuses %s by its name', (name, options) => {
    expect(refusalOf(options)).toMatch(`RedisLockModule: keepWhileBlocked: ${name}`);
    expect(refusalOf(options)).toContain(CANNOT);
  });

  it('refuses a backend of the user, or of a database', () => {
    const backend = { acquire: async () => ({}), close: async () => {} } as never;
    expect(refusalOf({ backend })).toContain('the backend is not one of this library on Redis');
  });

  it('is a duration', () => {
    expect(refusalOf({ backend: 'memory', keepWhileBlocked: 'soon' as never })).toContain('keepWhileBlocked');
    expect(refusalOf({ backend: 'memory', keepWhileBlocked: Number.POSITIVE_INFINITY })).toContain('keepWhileBlocked');
  });

  it.each(['memory' as const, new MemoryBackend({ runtime: nodeRuntime, store: new MemoryStore() })])(
    'has no effect in memory',
    async (backend) => {
      const locks = createLockService({ backend, keepWhileBlocked: '2m', logger: { warn: () => {}, error: () => {} } });
      await locks.started();
      await expect(locks.withLock('a', async () => 1)).resolves.toBe(1);
      await locks.close();
    },
  );

  describe('when the thread cannot be started', () => {
    let server: RedisServer;
    beforeAll(async () => {
      server = await startRedis();
    });
    afterAll(() => server.stop());
    beforeEach(() => server.client().flushall());

    const refusals = async () => {
      const others = createLockService({ connection: server.url });
      const ticket = await (await others.acquire('adopted')).detach({ for: '1m' });
      const locks = createLockService({ connection: server.url, keepWhileBlocked: '2m' });
      const members = (name: string) => [locks.getLock(name), others.getLock(`${name} of others`)];
      const failures = await Promise.allSettled([
        locks.started(),
        locks.withLock('one', async () => {}),
        locks.acquire(['several:1', 'several:2']),
        locks.acquire('permits', { permits: 2 }),
        locks.singleFlight('flight', async () => {}),
        locks.adopt(ticket),
        locks.getSemaphore('counted', { permits: 1 }).acquire(),
        locks.getPermitExpirableSemaphore('leased', { permits: 1 }).acquire(),
        locks.getMultiLock(...members('multi')).lock(),
        locks.getRedLock(...members('red')).lock(),
      ]);
      await Promise.all([locks.close(), others.close()]);
      return failures.map((failure) => (failure as PromiseRejectedResult).reason?.message ?? 'it was granted');
    };

    it('refuses the start, and without NestJS each acquisition, where there are no threads', async () => {
      const spy = jest.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined as never);
      const reasons = await refusals();
      spy.mockRestore();
      for (const reason of reasons)
        expect(reason).toBe(
          'RedisLockModule: keepWhileBlocked: the thread cannot be started: this runtime has no worker threads',
        );
    });

    it('says why the file of the thread could not be loaded', async () => {
      // A worker of jest reads TypeScript in a way that a thread does not inherit.
      for (const reason of await refusals()) expect(reason).toContain('the thread cannot be started: ');
    });
  });
});

describe('the settings of a connection for another thread', () => {
  it('keep what is a value, also keys and certificates', () => {
    const ca = Buffer.from('certificate');
    const settings = {
      host: 'a',
      port: 1,
      tls: { ca: [ca, 'text'], rejectUnauthorized: true },
      db: 0,
      natMap: { a: HOST },
    };
    expect(cloneSettings(settings, 'connection')).toEqual(settings);
  });

  it('lose functions that say when to try again, and what is not set', () => {
    const retries = { retryStrategy: () => null, reconnectOnError: () => true, reconnectStrategy: () => 1 };
    expect(cloneSettings({ host: 'a', password: null, path: undefined, ...retries }, 'connection')).toEqual({
      host: 'a',
    });
  });

  it('lose the functions that ioredis fills in for a cluster', () => {
    const options = { dnsLookup: dns.lookup, resolveSrv: dns.resolveSrv.bind(dns), useSRVRecords: false };
    expect(cloneSettings(options, 'connection')).toEqual({ useSRVRecords: false });
  });
});
