import { createServer } from 'node:net';

/**
 * A loopback port that nobody listens on, between 12000 and 21999: below the range from which the kernel takes the
 * ports of outgoing connections, so that a server can come back to its port, and such that a cluster's bus port
 * (+10000) is free of other servers too. Somebody else may take it before you do: be ready to ask again.
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
