import { createServer } from 'node:net';

/**
 * A free loopback port between 12000 and 21999. This is below the range from which the kernel takes the ports of
 * outgoing connections, so that a server can restart on its port. Other servers do not use the bus port of a cluster
 * (+10000) either. Another process may take the port first, so the caller has to be prepared to ask again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 10_000);
    if (await canListen(port)) {
      return port;
    }
  }
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
