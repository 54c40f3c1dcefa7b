import { type RedisSentinel, startSentinel } from './redis-sentinel.js';

describe('startSentinel', () => {
  let sentinel: RedisSentinel;
  beforeAll(async () => {
    sentinel = await startSentinel();
  });
  afterAll(() => sentinel.stop());

  it('gives a client the master, which two replicas follow', async () => {
    const client = sentinel.client();
    await client.set('key', 'value');
    expect(await client.call('WAIT', 2, 5000)).toBe(2);
    expect(await sentinel.replicas()).toHaveLength(2);
  });

  it('hands over to a replica, with the data', async () => {
    const client = sentinel.client();
    await client.set('key', 'before');
    await client.call('WAIT', 2, 5000);
    const old = await sentinel.master();
    const master = await sentinel.failover();
    expect(master).not.toBe(old);
    expect(await client.get('key')).toBe('before');
  });

  it('replaces a master that was killed', async () => {
    const old = await sentinel.master();
    const master = await sentinel.killMaster();
    expect(old.running).toBe(false);
    expect(master).not.toBe(old);
    expect(await sentinel.client().set('key', 'after')).toBe('OK');
  });
});
