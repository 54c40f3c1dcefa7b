import { type RedisCluster, startCluster } from './redis-cluster.js';

describe('startCluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.stop());

  it('spreads the slots over three masters with a replica each', async () => {
    const masters = new Set(await Promise.all([0, 8000, 16_383].map((slot) => cluster.masterOf(slot))));
    const replicas = new Set(await Promise.all([0, 8000, 16_383].map((slot) => cluster.replicaOf(slot))));
    expect(new Set([...masters, ...replicas])).toEqual(new Set(cluster.servers));
    const client = cluster.client();
    await Promise.all(['a', 'b', 'c', 'd'].map((key) => client.set(key, key)));
    expect(await Promise.all(['a', 'b', 'c', 'd'].map((key) => client.get(key)))).toEqual(['a', 'b', 'c', 'd']);
  });

  it('moves a slot with its keys', async () => {
    const client = cluster.client();
    await client.set('moving', 'value');
    const slot = await cluster.slotOf('moving');
    const old = await cluster.masterOf(slot);
    const master = await cluster.moveSlot(slot);
    expect(master).not.toBe(old);
    await expect(old.client().get('moving')).rejects.toThrow(`MOVED ${slot} 127.0.0.1:${master.port}`);
    expect(await client.get('moving')).toBe('value');
  });

  it('can leave a slot migration half finished', async () => {
    const client = cluster.client();
    await client.mset('{half}1', '1', '{half}2', '2');
    const move = await cluster.beginMove(await cluster.slotOf('{half}'));
    await move.migrate('{half}1');
    const direct = move.from.client();
    await expect(direct.get('{half}1')).rejects.toThrow(/^ASK /);
    // Redis 6.2 redirects the client to the other node, which then answers TRYAGAIN.
    await expect(direct.mget('{half}1', '{half}2')).rejects.toThrow(/^(TRYAGAIN|ASK) /);
    await move.finish();
    expect(await client.mget('{half}1', '{half}2')).toEqual(['1', '2']);
  });

  it('fails over from a master to its replica', async () => {
    const slot = await cluster.slotOf('calm');
    const [old, replica] = [await cluster.masterOf(slot), await cluster.replicaOf(slot)];
    expect(await cluster.failover(slot)).toBe(replica);
    expect(await cluster.masterOf(slot)).toBe(replica);
    expect(await cluster.replicaOf(slot)).toBe(old);
  });

  it('replaces a master that was killed, and takes it back as a replica', async () => {
    const client = cluster.client();
    const slot = await cluster.slotOf('key');
    const [old, replica] = [await cluster.masterOf(slot), await cluster.replicaOf(slot)];
    expect(await cluster.killMaster(slot)).toBe(replica);
    expect(await client.set('key', 'after')).toBe('OK');
    await old.start();
    await cluster.joined(old);
    expect(await cluster.replicaOf(slot)).toBe(old);
  });
});
