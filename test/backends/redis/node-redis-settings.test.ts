import { createClient, RESP_TYPES } from 'redis';
import { createClient as createClient5, RESP_TYPES as RESP_TYPES_5 } from 'redis5';
import type { Connection } from '../../../lib/backends/redis/links/connection.js';
import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { until } from '../../support/until.js';
import { RedisWorld } from './redis-world.js';

const silent = { warn: () => {}, error: () => {} };

const typeMapping = {
  [RESP_TYPES.BLOB_STRING]: Buffer,
  [RESP_TYPES.SIMPLE_STRING]: Buffer,
  [RESP_TYPES.NUMBER]: String,
};
const typeMapping5 = {
  [RESP_TYPES_5.BLOB_STRING]: Buffer,
  [RESP_TYPES_5.SIMPLE_STRING]: Buffer,
  [RESP_TYPES_5.NUMBER]: String,
};

describe('node-redis that turns answers into Buffers', () => {
  const world = new RedisWorld();
  let locks: LockService;

  beforeEach(() => world.redis.flushall());
  afterEach(() => locks.close());

  it.each<[string, (url: string) => unknown]>([
    ['by commandOptions', (url) => createClient({ url, commandOptions: { typeMapping } })],
    ['by withTypeMapping()', (url) => createClient({ url }).withTypeMapping(typeMapping)],
    ['by commandOptions of version 5', (url) => createClient5({ url, commandOptions: { typeMapping: typeMapping5 } })],
    ['by withTypeMapping() of version 5', (url) => createClient5({ url, RESP: 3 }).withTypeMapping(typeMapping5)],
    ['by options', (url) => ({ client: 'node-redis', url, commandOptions: { typeMapping } })],
  ])('%s: locks are acquired, awaited and released', async (_, connect) => {
    const connection = connect(world.server.url) as Connection;
    locks = createLockService({ connection, waitTime: '20s', outageTimeout: '2s', logger: silent });
    const first = await locks.acquire('order');
    expect(first.fencingToken).toBeGreaterThan(1e15);
    const waiting = locks.withLock('order', () => 'entered');
    await until(async () => (await world.connections('pubsub')).length === 1);
    await first.release();
    expect(await waiting).toBe('entered');
    expect(await locks.isLocked('order')).toBe(false);
  });
});

/** A provider of tokens, as for Entra ID: it sends each new one to everyone who is subscribed. */
class Tokens {
  readonly type = 'streaming-credentials-provider';
  readonly listeners = new Set<{ onNext(credentials: object): void }>();
  readonly errors: Error[] = [];
  private token = 'first';

  async subscribe(listener: { onNext(credentials: object): void }): Promise<[object, { dispose(): void }]> {
    this.listeners.add(listener);
    return [this.credentials, { dispose: () => this.listeners.delete(listener) }];
  }

  onReAuthenticationError(error: Error): void {
    this.errors.push(error);
  }

  change(token: string): void {
    this.token = token;
    for (const listener of this.listeners) listener.onNext(this.credentials);
  }

  private get credentials(): object {
    return { username: 'clerk', password: this.token };
  }
}

describe('node-redis with a streaming credentials provider', () => {
  const world = new RedisWorld();
  let locks: LockService;

  afterEach(() => locks.close());

  const live = async () => [...(await world.connections('normal')), ...(await world.connections('pubsub'))];
  const authentications = async () =>
    Number(/cmdstat_auth:calls=(\d+)/.exec(await world.redis.info('commandstats'))?.[1] ?? 0);

  it.each<[string, (url: string, credentialsProvider: Tokens) => unknown]>([
    ['a client of version 6', (url, credentialsProvider) => createClient({ url, credentialsProvider })],
    ['a client of version 5', (url, credentialsProvider) => createClient5({ url, RESP: 3, credentialsProvider })],
    ['options', (url, credentialsProvider) => ({ client: 'node-redis', url, credentialsProvider })],
  ])('%s: each connection has one subscription, which ends with it', async (_, connect) => {
    const user = (...rules: string[]) =>
      world.redis.acl('SETUSER', 'clerk', 'on', 'allkeys', 'allchannels', '+@all', ...rules);
    await user('resetpass', '>first');
    const tokens = new Tokens();
    const connection = connect(world.server.url, tokens) as Connection;
    locks = createLockService({ connection, waitTime: '20s', logger: silent });
    const lease = await locks.acquire('order');
    const waiting = locks.withLock('order', () => 'entered');
    const allConnected = async () => (await live()).length === 2;
    await until(allConnected);
    for (let n = 0; n < 4; n++) {
      const before = await live();
      for (const id of before) await world.redis.client('KILL', 'ID', id);
      await until(async () => (await allConnected()) && !(await live()).some((id) => before.includes(id)));
      await until(() => tokens.listeners.size === 2);
    }
    const count = await authentications();
    await user('resetpass', '>second');
    tokens.change('second');
    await until(async () => (await authentications()) === count + 2);
    expect(tokens.errors).toEqual([]);
    await lease.release();
    expect(await waiting).toBe('entered');
    await locks.close();
    expect(tokens.listeners.size).toBe(0);
  });
});

describe('a url of node-redis', () => {
  it.each<[string, (url: string) => Connection]>([
    ['options', (url) => ({ client: 'node-redis', url })],
    ['a root node', (url) => ({ client: 'node-redis', rootNodes: [{ url }] })],
  ])('is refused if it has a parameter, which node-redis would ignore: %s', (_, connect) => {
    const create = () => createLockService({ connection: connect('redis://127.0.0.1:1?db=3'), logger: silent });
    expect(create).toThrow(LockConfigurationError);
    expect(create).toThrow(/the parameter 'db', which node-redis would ignore: .*database/);
  });
});
