import { setTimeout as sleep } from 'node:timers/promises';
import { createCluster, createSentinel } from 'redis';
import { createCluster as createCluster5, createSentinel as createSentinel5 } from 'redis5';
import { slotOf } from '../../../../lib/backends/redis/hash-slot.js';
import { openTopology } from '../../../../lib/backends/redis/links/choose-client.js';
import type { Connection } from '../../../../lib/backends/redis/links/connection.js';
import type { SubscriberConnection } from '../../../../lib/backends/redis/links/link.js';
import type { Topology } from '../../../../lib/backends/redis/links/topology.js';
import { nodeRuntime } from '../../../../lib/engine/node-runtime.js';
import { startTcpProxy, type TcpProxy } from '../../../support/network/tcp-proxy.js';
import { type RedisCluster, startCluster } from '../../../support/servers/redis-cluster.js';
import { type RedisSentinel, startSentinel } from '../../../support/servers/redis-sentinel.js';
import type { RedisServer } from '../../../support/servers/redis-server.js';
import { until } from '../../../support/until.js';

type Node = { host: string; port: number };
type Map = Record<string, Node>;

const topologies: Topology[] = [];
afterEach(async () => {
  await Promise.all(topologies.splice(0).map((topology) => topology.close()));
});

function open(connection: Connection): Topology {
  const context = { runtime: nodeRuntime, commandTimeout: 5_000, onError: () => {}, onWarning: () => {} };
  const topology = openTopology(connection, context);
  topologies.push(topology);
  topology.connect({ ready: () => {}, failed: () => {} });
  return topology;
}

const answers = (topology: Topology, key = 'any') =>
  topology.send('exists', [key], key).reply.then(
    () => true,
    () => false,
  );

async function subscribe(
  topology: Topology,
  slot: number | undefined,
): Promise<{ ends: () => number; heard: string[] }> {
  const connection = topology.subscriber(slot) as SubscriberConnection;
  const heard: string[] = [];
  let ends = 0;
  await new Promise<void>((ready) => {
    connection.open({ ready, ended: () => ends++, failed: () => {}, message: (_, __, text) => heard.push(text) });
  });
  await connection.subscribe(slot === undefined ? 'channel' : 'sharded', ['news']);
  return { ends: () => ends, heard };
}

/** A server that clients reach through a proxy, as they reach one behind NAT. */
async function through(server: RedisServer): Promise<{ proxy: TcpProxy; map: Map }> {
  const proxy = await startTcpProxy(server.port);
  return { proxy, map: { [`127.0.0.1:${server.port}`]: { host: '127.0.0.1', port: proxy.port } } };
}

async function loseTheReplyOfAnIncr(topology: Topology, proxy: TcpProxy, key: string): Promise<string> {
  await until(() => answers(topology, key));
  proxy.dropReplies({ after: /incr/i, close: true });
  const command = topology.send('incr', [key], key);
  const outcome = command.reply.then(
    () => 'answered',
    (error: unknown) => (command.isAnswer(error) ? 'refused' : 'unknown'),
  );
  await until(() => proxy.droppedReplies > 0);
  await proxy.heal();
  await until(() => answers(topology, key));
  return `${await outcome}${command.resent ? ', sent twice' : ''}`;
}

const cluster = {
  ioredis: (nodes: readonly Node[], natMap?: Map) => ({ nodes, options: { natMap } }),
  'options for node-redis': (nodes: readonly Node[], nodeAddressMap?: Map) => ({
    client: 'node-redis' as const,
    rootNodes: nodes.map((socket) => ({ socket })),
    nodeAddressMap,
  }),
  'createCluster() of node-redis 6': (nodes: readonly Node[], nodeAddressMap?: Map) =>
    createCluster({ rootNodes: nodes.map((socket) => ({ socket })), nodeAddressMap }),
  'createCluster() of node-redis 5': (nodes: readonly Node[], nodeAddressMap?: Map) =>
    createCluster5({ rootNodes: nodes.map((socket) => ({ socket })), nodeAddressMap }),
} satisfies Record<string, (nodes: readonly Node[], map?: Map) => Connection>;

describe.each(Object.entries(cluster))('links to a cluster by %s', (library, connection) => {
  let servers: RedisCluster;
  beforeAll(async () => {
    servers = await startCluster();
  }, 60_000);
  afterAll(() => servers?.stop(), 60_000);

  it('send each command to the master of its slot', async () => {
    const topology = open(connection(servers.nodes));
    for (const key of ['a', 'b', 'c', 'd', 'e']) {
      expect(await topology.send('set', [key, key], key).reply).toBe('OK');
      const { port } = await servers.masterOf(slotOf(key));
      expect(topology.nodeOfSlot(slotOf(key))).toBe(`127.0.0.1:${port}`);
      expect(topology.master(slotOf(key), 0)?.address).toBe(`127.0.0.1:${port}`);
    }
    expect(topology.masters()).toHaveLength(3);
    expect(topology.unreachableMasters()).toEqual([]);
  });

  it('use a master that can be reached if any master is suitable', async () => {
    const masters = await Promise.all(['a', 'b', 'c'].map((key) => servers.masterOf(slotOf(key))));
    expect(new Set(masters).size).toBe(3);
    for (const master of masters) {
      const { proxy, map } = await through(master);
      const topology = open(connection(servers.nodes, map));
      const dead = `127.0.0.1:${master.port}`;
      await until(() => topology.masters().length === 3);
      await Promise.all(topology.masters().map((link) => link.send('ping', []).reply));
      await proxy.stop();
      await until(() => topology.unreachableMasters().length > 0);
      expect(await topology.send('ping', []).reply).toBe('PONG');
      const chosen = [0, 0.4, 0.8].map((random) => topology.master(undefined, random)?.address);
      expect(chosen).not.toContain(library === 'ioredis' ? `127.0.0.1:${proxy.port}` : dead);
      for (let subscriber = 0; subscriber < 5; subscriber++) await subscribe(topology, undefined);
      // This one has never been connected to it.
      expect(await open(connection(servers.nodes, map)).send('ping', []).reply).toBe('PONG');
    }
  });

  it('never execute twice in silence: the reply of an INCR is lost', async () => {
    const key = `counter:${library}`;
    const { proxy, map } = await through(await servers.masterOf(slotOf(key)));
    const client = servers.client();
    await client.del(key);
    const outcome = await loseTheReplyOfAnIncr(open(connection(servers.nodes, map)), proxy, key);
    expect([outcome, await client.get(key)]).toEqual(
      library === 'ioredis' ? ['answered, sent twice', '2'] : ['unknown', '1'],
    );
    await Promise.all(topologies.splice(0).map((topology) => topology.close()));
    await proxy.stop();
  });

  it('follow a slot that moves: MOVED, ASK and TRYAGAIN', async () => {
    const topology = open(connection(servers.nodes));
    const [one, two] = [`{moving ${library}}1`, `{moving ${library}}2`];
    await topology.send('mset', [one, '1', two, '2'], one).reply;
    const move = await servers.beginMove(slotOf(one));
    await move.migrate(one);
    expect(await topology.send('get', [one], one).reply).toBe('1'); // ASK
    const both = topology.send('mget', [one, two], one); // TRYAGAIN, until the other key is there, too
    const strict = topology.send('mget', [one, two], one, true);
    await expect(strict.reply).rejects.toThrow(/^TRYAGAIN/);
    await move.migrate(two);
    expect(await both.reply).toEqual(['1', '2']);
    await move.finish();
    expect(await topology.send('get', [two], two).reply).toBe('2'); // MOVED
    const { port } = await servers.masterOf(slotOf(one));
    await until(() => topology.nodeOfSlot(slotOf(one)) === `127.0.0.1:${port}`);
  });

  it('end a sharded subscription whose slot has moved', async () => {
    const client = servers.client();
    const [spublish] = (await client.command('INFO', 'spublish')) as unknown[];
    if (!spublish) return; // Redis 6 has none
    const topology = open(connection(servers.nodes));
    await until(() => answers(topology, 'news'));
    const { ends, heard } = await subscribe(topology, slotOf('news'));
    await client.spublish('news', 'hello');
    await until(() => heard.length > 0);
    await servers.moveSlot(slotOf('news'));
    await until(() => ends() > 0);
  });

  it('find the successor of a master that was killed', async () => {
    const topology = open(connection(servers.nodes));
    await until(() => answers(topology, 'killed'));
    const old = await servers.masterOf(slotOf('killed'));
    await servers.killMaster(slotOf('killed'));
    await until(() => {
      topology.refresh();
      return answers(topology, 'killed');
    }, 30_000);
    expect(topology.nodeOfSlot(slotOf('killed'))).not.toBe(`127.0.0.1:${old.port}`);
  });
});

const group = (name: string, sentinels: readonly Node[], nodeAddressMap?: Map) => ({
  name,
  sentinelRootNodes: [...sentinels],
  nodeAddressMap,
});
const sentinel = {
  ioredis: (name: string, sentinels: readonly Node[], natMap?: Map) => ({ name, sentinels: [...sentinels], natMap }),
  'options for node-redis': (name: string, sentinels: readonly Node[], map?: Map) => ({
    client: 'node-redis' as const,
    ...group(name, sentinels, map),
  }),
  'createSentinel() of node-redis 6': (name: string, sentinels: readonly Node[], map?: Map) =>
    createSentinel(group(name, sentinels, map)),
} satisfies Record<string, (name: string, sentinels: readonly Node[], map?: Map) => Connection>;

describe.each(Object.entries(sentinel))('links through Sentinels by %s', (library, connection) => {
  let servers: RedisSentinel;
  let name: string;
  let sentinels: Node[];
  beforeAll(async () => {
    servers = await startSentinel();
    name = servers.options.name as string;
    sentinels = servers.options.sentinels as Node[];
  }, 60_000);
  afterAll(() => servers?.stop(), 60_000);

  it('never execute twice in silence: the reply of an INCR is lost', async () => {
    const { proxy, map } = await through(await servers.master());
    const outcome = await loseTheReplyOfAnIncr(open(connection(name, sentinels, map)), proxy, 'counter');
    expect([outcome, await servers.client().get('counter')]).toEqual(
      library === 'ioredis' ? ['answered, sent twice', '2'] : ['unknown', '1'],
    );
    await Promise.all(topologies.splice(0).map((topology) => topology.close()));
    await proxy.stop();
  });

  it('go to the new master after a failover, also to subscribe', async () => {
    const topology = open(connection(name, sentinels));
    await until(() => answers(topology));
    const { ends } = await subscribe(topology, undefined);
    const master = await servers.failover();
    await until(async () => {
      const info = await topology.send('info', ['server']).reply.catch(() => '');
      return String(info).includes(`tcp_port:${master.port}`);
    });
    await until(() => ends() > 0);
    const { heard } = await subscribe(topology, undefined);
    await servers.client().publish('news', 'hello');
    await until(() => heard.length > 0);
  });

  it('leave a replica that was the master: READONLY', async () => {
    const topology = open(connection(name, sentinels));
    await until(() => answers(topology));
    const old = await servers.master();
    await servers.failover();
    await until(async () => {
      const command = topology.send('set', ['written', '1']);
      const answer = await command.reply.catch((error: unknown) => {
        if (command.isAnswer(error) && /^READONLY/.test((error as Error).message)) topology.leaveReplica();
        return error;
      });
      return answer === 'OK';
    });
    expect(await servers.client().get('written')).toBe('1');
    expect(old).not.toBe(await servers.master());
  });

  it('ask the next Sentinel if one is down', async () => {
    await servers.sentinels[0]?.kill();
    const topology = open(connection(name, sentinels));
    await until(() => answers(topology));
  });

  it('leave no connection to a Sentinel behind', async () => {
    const [, asked] = servers.sentinels;
    const observer = asked?.client();
    const clients = async () => String(await observer?.client('LIST')).split('\n').length;
    await until(async () => (await clients()) > 0);
    const before = await clients();
    const topology = open(connection(name, sentinels));
    await until(() => answers(topology));
    await sleep(100);
    await topology.close();
    await until(async () => (await clients()) <= before);
  });
});

it('a Sentinel client of node-redis 5 is refused, with the remedy', () => {
  const client = createSentinel5({ name: 'any', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] });
  expect(() => open(client)).toThrow(
    /keeps its settings to itself: give \{ client: 'node-redis', name, sentinelRootNodes/,
  );
});

it.each([
  [{ client: 'node-redis' as const, sentinelRootNodes: [{ host: 'a', port: 1 }] }, /no name: give that of the master/],
  [{ client: 'node-redis' as const, name: 'x', sentinelRootNodes: [] }, /no sentinelRootNodes/],
  [{ client: 'node-redis' as const, rootNodes: [] }, /no rootNodes/],
])('options for node-redis that lead nowhere are refused: %j', (options, message) => {
  expect(() => open(options)).toThrow(message);
});
