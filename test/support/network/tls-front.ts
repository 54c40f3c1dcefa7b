import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { createServer, type Server } from 'node:tls';

/** A key that protects nothing. It is public, self-signed, and only for tests. */
export const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgMmW+XyL8TL4L1Hph
ZMBJbPsY0ZmvBc7kX3k1fS1ge6yhRANCAAQbh4fG5dob4tqJ8Mngbuy11FXr9wv9
a045Auno9VJTm3SK63qQ+ThYwI4YhcP/G7ks/np/YCiNmC2JWCEb9UKO
-----END PRIVATE KEY-----
`;
export const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBfjCCASWgAwIBAgIUIgIdAZkX9VgrfA8rOg6AUv3U4JMwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNDA5Mjc1N1oYDzIxMjYxMDMx
MDkyNzU3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQbh4fG5dob4tqJ8Mngbuy11FXr9wv9a045Auno9VJTm3SK63qQ+ThY
wI4YhcP/G7ks/np/YCiNmC2JWCEb9UKOo1MwUTAdBgNVHQ4EFgQUh/22a7g3oT0Z
t139qgdOjbkjoaIwHwYDVR0jBBgwFoAUh/22a7g3oT0Zt139qgdOjbkjoaIwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiB4YVboSxZYvm474HhG19np
OEIXYwL78s6a2dQQz8G56QIga3Q11524yfe0sN5vZD+7VWxMBKZMuDpAYNZSBveY
33U=
-----END CERTIFICATE-----
`;

/** Accepts TLS on a free loopback port, and forwards to a server on another port. */
export class TlsFront {
  static async to(port: number): Promise<TlsFront> {
    const server = createServer({ key: KEY, cert: CERTIFICATE }, (socket) => {
      const inner = connect(port, '127.0.0.1');
      socket.pipe(inner).pipe(socket);
      socket.on('error', () => inner.destroy());
      inner.on('error', () => socket.destroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TlsFront(server);
  }

  private constructor(private readonly server: Server) {}

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  stop(): void {
    this.server.close();
  }
}
