export * from '../../lib/backends/redis/links/load-client.js';

/**
 * With `TEST_CLIENT=node-redis`, this replaces `links/load-client`, so that the library finds only node-redis for a
 * URL. The classes of ioredis remain for tests that pass a client of ioredis.
 */
export const loadIoredis = (): undefined => undefined;
