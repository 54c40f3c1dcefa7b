/**
 * Warns of a server that evicts keys when its memory is full: it could evict a lock that is held, and grant it again.
 */
export function warnOfEviction(info: string, server: string, warn: (message: string) => void): void {
  const limit = /^maxmemory:(\d+)/m.exec(info)?.[1] ?? '0';
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction';
  if (limit === '0' || policy === 'noeviction') return;
  warn(
    `${server}: maxmemory-policy is '${policy}', so Redis may evict locks that are held and grant them twice. Set it to 'noeviction', or use a separate Redis for locks`,
  );
}
