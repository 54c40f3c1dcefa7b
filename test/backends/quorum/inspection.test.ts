import { hostname } from 'node:os';
import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { startNodes } from './redis-nodes.js';

const logger = { warn: () => {}, error: () => {} };

describe('a quorum, seen from outside', () => {
  let servers: RedisServer[];
  let shop: LockService;
  let other: LockService;
  beforeAll(async () => {
    servers = await startNodes(3);
    const quorum = servers.map(({ url }) => url);
    shop = createLockService({ quorum, applicationName: 'shop-2', logger });
    other = createLockService({ quorum, applicationName: 'stock', logger });
  });
  afterAll(async () => {
    await Promise.all([shop.close(), other.close()]);
    await Promise.all(servers.map((server) => server.stop()));
  });

  it('inspects one lock: its owners, and the callers of this service that wait', async () => {
    const lease = await shop.acquire('order', { group: 'payments' });
    const waiting = other.acquire('order');
    // On a busy machine, a majority may take longer than the 500 ms that each server has for its answer.
    await until(() =>
      other.inspect('order').then(
        ({ waiting }) => waiting === 1,
        () => false,
      ),
    );
    expect(await other.inspect('order')).toEqual({
      locked: true,
      type: 'exclusive',
      owners: [{ owner: lease.owner, mine: false, remainingTime: expect.any(Number) }],
      waiting: 1,
      line: [expect.objectContaining({ callers: 1, mine: true })],
    });
    expect((await shop.inspect('order')).owners).toMatchObject([
      { owner: lease.owner, mine: true, client: { application: 'shop-2', host: hostname(), group: 'payments' } },
    ]);
    await lease.release();
    await (await waiting).release();
    expect(await shop.inspect('order')).toMatchObject({ locked: false, owners: [], waiting: 0 });
  });

  it('refuses list() and clients(), and says what to use instead', async () => {
    await expect(shop.list()).rejects.toThrow(LockConfigurationError);
    await expect(shop.list()).rejects.toThrow(
      /^list\(\): the backend \(quorum of .+\) cannot list locks; ask a service with a connection to one of its servers$/,
    );
    await expect(shop.clients()).rejects.toThrow(LockConfigurationError);
    await expect(shop.clients()).rejects.toThrow(
      /^clients\(\): the backend \(quorum of .+\) keeps no records of clients; inspect\(name\) shows the owners of one lock$/,
    );
  });

  it('is listed by a service with a connection to one of its servers, without its clients', async () => {
    const lease = await shop.acquire('invoice');
    const views = servers.map(({ url }) => createLockService({ connection: url, logger }));
    const lists = await Promise.all(views.map((view) => view.list()));
    const seen = lists.flatMap(({ locks }) => locks).filter(({ name }) => name === 'invoice');
    expect(seen.length).toBeGreaterThanOrEqual(2);
    for (const { owners } of seen)
      expect(owners).toEqual([{ owner: lease.owner, mine: false, remainingTime: expect.any(Number) }]);
    for (const view of views) expect(await view.clients()).toEqual([]);
    await Promise.all(views.map((view) => view.close()));
    await lease.release();
  });
});
