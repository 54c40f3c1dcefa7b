import { CERTIFICATE, TlsFront } from '../support/network/tls-front.js';
import { startCluster } from '../support/servers/redis-cluster.js';
import { startSentinel } from '../support/servers/redis-sentinel.js';
import { startRedis } from '../support/servers/redis-server.js';
import { startBlocked } from './blocked-process.js';

interface Servers {
  readonly connection: object;
  stop(): Promise<void>;
}

const TOPOLOGIES: Record<string, () => Promise<Servers>> = {
  'a cluster': async () => {
    const cluster = await startCluster();
    return { connection: { nodes: cluster.nodes }, stop: () => cluster.stop() };
  },
  Sentinel: async () => {
    const sentinel = await startSentinel();
    return { connection: sentinel.options, stop: () => sentinel.stop() };
  },
  TLS: async () => {
    const redis = await startRedis();
    const front = await TlsFront.to(redis.port);
    const connection = { host: 'localhost', port: front.port, tls: { ca: CERTIFICATE } };
    const stop = async () => {
      front.stop();
      await redis.stop();
    };
    return { connection, stop };
  },
};

describe('locks of a process whose event loop is blocked', () => {
  it.each(Object.entries(TOPOLOGIES))('are kept on %s', async (_, start) => {
    const { connection, stop } = await start();
    try {
      const blocked = startBlocked(['reentrant', 'write', 'permits'], { connection });
      await blocked.done();
      for (const kind of ['reentrant', 'write', 'permits'])
        expect(blocked.of(kind)).toMatchObject({ belief: { held: true }, end: { result: 'result' } });
    } finally {
      await stop();
    }
  });
});
