import * as real from '../../lib/backends/redis/links/load-client.js';

/**
 * With `TEST_CLIENT=node-redis`, the library gets this for `links/load-client`: a URL finds node-redis alone. The
 * classes of ioredis remain for the tests that give a client of it.
 */
export const loadIoredis = (): undefined => undefined;
export const { loadNodeRedis, requireIoredis, requireNodeRedis } = real;
