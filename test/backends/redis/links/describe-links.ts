import { setTimeout as sleep } from 'node:timers/promises';
import { openTopology } from '../../../../lib/backends/redis/links/choose-client.js';
import type { Connection } from '../../../../lib/backends/redis/links/connection.js';
import type { ConnectionContext } from '../../../../lib/backends/redis/links/connection-context.js';
import type { ChannelKind, SubscriberConnection } from '../../../../lib/backends/redis/links/link.js';
import type { Topology } from '../../../../lib/backends/redis/links/topology.js';
import { nodeRuntime } from '../../../../lib/engine/node-runtime.js';
import { startTcpProxy, type TcpProxy } from '../../../support/network/tcp-proxy.js';
import { type RedisServer, startRedis } from '../../../support/servers/redis-server.js';
import { until } from '../../../support/until.js';

/** An adapter under test. */
export interface Adapter {
  /** Makes a connection to one server, and returns it with what must be closed afterwards. */
  connect(url: string): { readonly connection: Connection; readonly close?: () => unknown };
  /** Whether it sends commands again whose reply was lost, and reports that. */
  readonly sendsAgain: boolean;
  /** Whether the connection is the user's own client, whose events are the user's concern. */
  readonly isBorrowed?: true;
}

/** Long enough for a slow machine. */
const COMMAND_TIMEOUT = 5_000;

/** Records what a topology reports, and its errors. */
interface Opened {
  readonly topology: Topology;
  readonly failures: Error[];
  readonly connections: () => number;
}

/** What a link must report, whichever client is behind it. The guarantees of the backend depend on each of these. */
export function describeLinks(name: string, adapter: Adapter): void {
  describe(`links by ${name}`, () => {
    let redis: RedisServer;
    let proxy: TcpProxy;
    const closing: (() => unknown)[] = [];

    beforeAll(async () => {
      redis = await startRedis();
    });
    beforeEach(async () => {
      proxy = await startTcpProxy(redis.port);
    });
    afterEach(async () => {
      await proxy.heal();
      for (const close of closing.splice(0).reverse()) await close();
      await proxy.stop();
    });
    afterAll(() => redis.stop());

    function open(url = proxy.url, commandTimeout = COMMAND_TIMEOUT): Opened {
      const failures: Error[] = [];
      const context: ConnectionContext = {
        runtime: nodeRuntime,
        commandTimeout,
        onError: () => {},
        onWarning: () => {},
      };
      const { connection, close } = adapter.connect(url);
      if (close !== undefined) closing.push(close);
      const topology = openTopology(connection, context);
      closing.push(() => topology.close());
      let connections = 0;
      topology.connect({ ready: () => connections++, failed: (error) => failures.push(error) });
      return { topology, failures, connections: () => connections };
    }

    async function subscribe(
      topology: Topology,
    ): Promise<{ connection: SubscriberConnection; heard: string[]; ends: () => number }> {
      const connection = topology.subscriber(undefined) as SubscriberConnection;
      const heard: string[] = [];
      let ends = 0;
      closing.push(() => connection.close());
      await new Promise<void>((ready) => {
        connection.open({
          ready,
          ended: () => ends++,
          failed: () => {},
          message: (subscribed, channel, text) => heard.push(`${subscribed} ${channel} ${text}`),
        });
      });
      return { connection, heard, ends: () => ends };
    }

    it('answer, and say when and where a command was written', async () => {
      const { topology } = open();
      const before = performance.now();
      const command = topology.send('echo', ['déjà vu']);
      expect(command.socket).toBeUndefined();
      expect(await command.reply).toBe('déjà vu');
      expect(command.socket).toBeDefined();
      expect(command.resent).toBe(false);
      expect(command.writtenAt).toBeGreaterThanOrEqual(before);
      expect(command.writtenAt).toBeLessThanOrEqual(performance.now());
      const next = topology.master(undefined, 0)?.send('time', []);
      expect(await next?.reply).toHaveLength(2);
      expect(next?.socket).toBe(command.socket);
      expect(topology.connectionError).toBeUndefined();
    });

    it('decode integers, nil and lists', async () => {
      const { topology } = open();
      const script = "return {1, 'two', false, {3, {'four'}}}";
      expect(await topology.send('eval', [script, '0']).reply).toEqual([1, 'two', null, [3, ['four']]]);
      expect(await topology.send('get', ['nothing']).reply).toBeNull();
    });

    it('distinguish answers of the server from errors on the way', async () => {
      const { topology } = open();
      const unknown = topology.send('evalsha', ['0'.repeat(40), '0']);
      const answer = await unknown.reply.catch((error: unknown) => error);
      expect(String((answer as Error).message)).toMatch(/^NOSCRIPT/);
      expect(unknown.isAnswer(answer)).toBe(true);
      const command = topology.send('blpop', ['nothing', '0']);
      const reply = command.reply.catch((error: unknown) => error);
      await until(() => command.socket !== undefined);
      await topology.close();
      for (const close of closing.splice(0).reverse()) await close();
      expect(command.isAnswer(await reply)).toBe(false);
    });

    it('never execute what was abandoned before there was a connection', async () => {
      await proxy.refuse();
      const { topology } = open();
      const command = topology.send('set', ['abandoned', '1']);
      command.reply.catch(() => {});
      await sleep(100);
      expect(command.socket).toBeUndefined();
      command.abandon();
      await proxy.heal();
      await until(async () => (await topology.send('ping', []).reply.catch(() => '')) === 'PONG');
      expect(await redis.client().exists('abandoned')).toBe(0);
    });

    it('never execute twice in silence: the reply of an INCR is lost', async () => {
      const { topology } = open();
      await topology.send('ping', []).reply;
      const counter = `counter:${name}`;
      proxy.dropReplies({ after: /incr/i, close: true });
      const command = topology.send('incr', [counter]);
      const outcome = command.reply.then(
        () => 'answered',
        (error: unknown) => (command.isAnswer(error) ? 'refused' : 'unknown'),
      );
      await until(() => proxy.droppedReplies > 0);
      await proxy.heal();
      await until(async () => (await topology.send('ping', []).reply.catch(() => '')) === 'PONG');
      const count = Number(await redis.client().get(counter));
      expect([await outcome, command.resent, count > 1]).toEqual(
        adapter.sendsAgain ? ['answered', true, true] : ['unknown', false, false],
      );
    });

    it('say for how long a connection has been silent, and replace it', async () => {
      const { topology } = open();
      await topology.send('ping', []).reply;
      proxy.cutHalfOpen();
      const command = topology.send('incr', ['silent']);
      command.reply.catch(() => {});
      await until(() => (command.idleSinceWrite ?? 0) > 50);
      const { socket } = command;
      await proxy.heal();
      command.destroySocket(new Error('silent'));
      await until(async () => (await topology.send('ping', []).reply.catch(() => '')) === 'PONG');
      const next = topology.send('ping', []);
      expect(await next.reply).toBe('PONG');
      expect(next.socket).not.toBe(socket);
      expect(next.idleSinceWrite).toBeUndefined();
    });

    it('give up a connection whose first commands are not answered', async () => {
      if (adapter.isBorrowed) return; // its time limits are the user's
      proxy.dropReplies();
      const { topology } = open(proxy.url, 500);
      await until(() => proxy.droppedReplies > 0);
      await proxy.heal();
      await until(async () => (await topology.send('ping', []).reply.catch(() => '')) === 'PONG');
      proxy.dropReplies();
      const connection = topology.subscriber(undefined) as SubscriberConnection;
      closing.push(() => connection.close());
      let ended = false;
      connection.open({ ready: () => {}, failed: () => {}, message: () => {}, ended: () => (ended = true) });
      await until(() => ended);
    });

    it('reconnect automatically, and report it', async () => {
      const { topology, failures, connections } = open();
      await topology.send('ping', []).reply;
      await proxy.refuse();
      await until(() => topology.connectionError !== undefined);
      if (!adapter.isBorrowed) await until(() => failures.length > 0);
      await proxy.heal();
      await until(() => topology.connectionError === undefined);
      if (!adapter.isBorrowed) expect(connections()).toBe(2);
      expect(await topology.send('ping', []).reply).toBe('PONG');
    });

    it('report a wrong password without showing it', async () => {
      await redis.client().call('ACL', 'SETUSER', 'shy', 'reset', 'on', '>right-one', '~*', '+@all');
      const { failures, topology } = open(proxy.url.replace('//', '//shy:wrong-one@'));
      topology.send('ping', []).reply.catch(() => {});
      await until(
        () => failures.some(({ message }) => message.includes('WRONGPASS')) || topology.connectionError !== undefined,
      );
      for (const text of [...failures.map(String), String(topology.connectionError), topology.description])
        expect(text).not.toContain('wrong-one');
    });

    const knows = async (command: string) => {
      const [found] = (await redis.client().command('INFO', command)) as unknown[];
      return Boolean(found);
    };

    const kinds: readonly [ChannelKind, string, string][] = [
      ['channel', 'news', 'publish'],
      ['pattern', 'n?ws', 'publish'],
      ['sharded', 'news', 'spublish'],
    ];
    it.each(kinds)(
      'confirm the subscription to a %s when the server has, and not before',
      async (kind, subscribed, publish) => {
        if (!(await knows(publish))) return; // Redis 6 has no sharded channels
        const { topology } = open();
        await topology.send('ping', []).reply;
        const { connection, heard } = await subscribe(topology);
        proxy.holdUp({ replies: () => 300 });
        let confirmed = false;
        const subscription = connection.subscribe(kind, [subscribed]).then(() => {
          confirmed = true;
        });
        await sleep(100);
        expect(confirmed).toBe(false);
        proxy.letThrough();
        await subscription;
        await redis.client().call(publish, 'news', 'hello');
        await until(() => heard.length > 0);
        expect(heard).toEqual([`${subscribed} news hello`]);
        await connection.ping?.();
        await connection.unsubscribe(kind, [subscribed]);
        await redis.client().call(publish, 'news', 'unheard');
        await sleep(50);
        expect(heard).toHaveLength(1);
      },
    );

    it.each(kinds)('subscribe again to a %s that they are about to leave', async (kind, subscribed, publish) => {
      if (!(await knows(publish))) return;
      const { topology } = open();
      await topology.send('ping', []).reply;
      const { connection, heard } = await subscribe(topology);
      await connection.subscribe(kind, [subscribed]);
      const left = connection.unsubscribe(kind, [subscribed]);
      await Promise.all([left, connection.subscribe(kind, [subscribed])]);
      await connection.ping?.();
      expect(await redis.client().call(publish, 'news', 'hello')).toBe(1);
      await until(() => heard.length > 0);
      await Promise.all([
        connection.unsubscribe(kind, [subscribed]),
        connection.subscribe(kind, [subscribed]),
        connection.unsubscribe(kind, [subscribed]),
      ]);
      expect(await redis.client().call(publish, 'news', 'unheard')).toBe(0);
    });

    it('end a subscription with its connection, once or more, and never renew it', async () => {
      const { topology } = open();
      await topology.send('ping', []).reply;
      const { connection, heard, ends } = await subscribe(topology);
      await connection.subscribe('channel', ['news']);
      for (const line of String(await redis.client().client('LIST', 'TYPE', 'PUBSUB')).split('\n')) {
        const id = /^id=(\d+)/.exec(line)?.[1];
        if (id !== undefined) await redis.client().client('KILL', 'ID', id);
      }
      await until(() => ends() > 0);
      await sleep(300);
      await redis.client().publish('news', 'unheard');
      await sleep(50);
      expect(heard).toEqual([]);
    });

    it('leave no connection behind that was being opened when they were closed', async () => {
      const { topology } = open();
      await topology.send('ping', []).reply;
      const connection = topology.subscriber(undefined) as SubscriberConnection;
      connection.open({ ready: () => {}, ended: () => {}, failed: () => {}, message: () => {} });
      const other = open().topology;
      for (let turn = 0; turn < 5; turn++) await Promise.resolve();
      connection.close();
      await other.close();
      await topology.close();
      for (const close of closing.splice(0).reverse()) await close();
      await sleep(200);
      expect(proxy.live).toBe(0);
    });

    it('leave no connection behind', async () => {
      const { topology } = open();
      await topology.send('ping', []).reply;
      const { connection } = await subscribe(topology);
      await connection.subscribe('channel', ['news']);
      connection.close();
      await topology.close();
      for (const close of closing.splice(0).reverse()) await close();
      await until(() => proxy.live === 0);
    });
  });
}
