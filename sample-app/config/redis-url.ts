/**
 * The Redis that all processes of the shop share. Without one, the shop is a single process that keeps everything in
 * memory.
 */
export function redisUrl(): string | undefined {
  return process.env.REDIS_URL || undefined;
}
