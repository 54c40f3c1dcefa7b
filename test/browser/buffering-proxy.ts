import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A reverse proxy that serves the application below `/tools`, and passes an answer on only when it is complete. */
export class BufferingProxy {
  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(target: string): Promise<BufferingProxy> {
    const { hostname, port } = new URL(target);
    const server = createServer((incoming, outgoing) => {
      const { method, headers, url = '' } = incoming;
      const path = url.replace(/^\/tools/, '');
      const forwarded = request({ hostname, port, path, method, headers }, async (answer) => {
        const parts: Buffer[] = [];
        try {
          for await (const part of answer) parts.push(part);
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers).end(Buffer.concat(parts));
        } catch {
          outgoing.destroy();
        }
      });
      forwarded.on('error', () => outgoing.destroy());
      outgoing.on('close', () => forwarded.destroy());
      incoming.pipe(forwarded);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new BufferingProxy(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}/tools`);
  }

  async close(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }
}
