import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { Connection } from '../../../lib/service/redis-lock-options.js';
import { startNodes } from './redis-nodes.js';

describe('the option quorum', () => {
  it('makes a lock service over independent masters', async () => {
    const servers = await startNodes(3);
    const clients = servers.map((server) => server.client());
    const locks = createLockService({ quorum: servers.map(({ url }) => url) });
    const lease = await locks.acquire('order');
    const owners = await Promise.all(clients.map((client) => client.hkeys('lock:order')));
    expect(owners.filter(([owner]) => owner === lease.owner).length).toBeGreaterThanOrEqual(2);
    await lease.release();
    await locks.close();
    await Promise.all(servers.map((server) => server.stop()));
  });

  it.each([
    ['no', []],
    ['one', ['redis://127.0.0.1:1']],
    ['two', ['redis://127.0.0.1:1', 'redis://127.0.0.1:2']],
    ['four', [1, 2, 3, 4].map((port) => `redis://127.0.0.1:${port}`)],
    ['a single', 'redis://127.0.0.1:1' as unknown as Connection[]],
  ])('refuses %s connections', (_count, quorum) => {
    expect(() => createLockService({ quorum })).toThrow(LockConfigurationError);
    expect(() => createLockService({ quorum })).toThrow(/odd number of connections, three or more/);
  });

  it('refuses the same server twice, because one crash would then take away two votes', () => {
    const quorum = [
      'redis://127.0.0.1:1',
      'redis://127.0.0.1:2',
      { host: 'localhost', port: 1, password: 'secret', db: 5 },
    ];
    expect(() => createLockService({ quorum })).toThrow(LockConfigurationError);
    expect(() => createLockService({ quorum })).toThrow(
      /quorum\[2\] is the same server as quorum\[0\] \(redis localhost:1\)/,
    );
  });

  it('says which of its connections is wrong', () => {
    const quorum = ['redis://127.0.0.1:1', 'localhost', 'redis://127.0.0.1:3'];
    expect(() => createLockService({ quorum })).toThrow(/quorum\[1\].*not a Redis URL/);
  });
});
