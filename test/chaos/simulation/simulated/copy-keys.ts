import type { InProcessServer } from '../../../../lib/backends/redis/in-process/in-process-server.js';

/** Writes all keys of one server to another one, with the times at which they expire. */
export function copyKeys(from: InProcessServer, to: InProcessServer): void {
  for (const key of from.keys.keys()) {
    copyValue(key, from, to);
    const end = from.keys.endOf(key);
    if (end !== null && end !== undefined) to.keys.expireAt(key, end);
  }
}

function copyValue(key: string, from: InProcessServer, to: InProcessServer): void {
  const type = from.keys.typeOf(key);
  const ask = (command: string, ...args: readonly string[]) => from.execute(command, [key, ...args]) as string[];
  switch (type) {
    case 'string':
      return void to.execute('SET', [key, from.execute('GET', [key]) as string]);
    case 'hash':
      return void to.execute('HSET', [key, ...ask('HGETALL')]);
    case 'list':
      return void to.execute('RPUSH', [key, ...ask('LRANGE', '0', '-1')]);
    case 'zset': {
      const rows = ask('ZRANGE', '0', '-1', 'WITHSCORES');
      for (let n = 0; n < rows.length; n += 2) to.execute('ZADD', [key, rows[n + 1], rows[n]]);
    }
  }
}
