import { checkUrl } from '../../backends/redis/diagnostics.js';
import { usageError } from '../command-error.js';

/** The Redis to connect to. */
export interface RedisPlace {
  readonly url: string;
  readonly isCluster: boolean;
  /** Without the password. */
  readonly description: string;
}

/**
 * There is no default, because the wrong Redis would give an empty list, which looks as if nothing were locked.
 *
 * @throws CommandError
 */
export function redisPlace(
  { url, cluster = false }: { readonly url?: string; readonly cluster?: boolean },
  environment: NodeJS.ProcessEnv,
): RedisPlace {
  const given = url ?? environment.REDIS_URL;
  if (given === undefined || given === '')
    throw usageError('The address of Redis is missing: give --url redis://host:6379, or set REDIS_URL');
  try {
    checkUrl(given);
  } catch (error) {
    const message = (error as Error).message.replace(/\.$/, '');
    throw usageError(`${url === undefined ? 'REDIS_URL' : '--url'}: ${message}`);
  }
  const isPath = given.startsWith('/');
  if (cluster && isPath) throw usageError('--cluster: give the URL of a node, with a host');
  const place = isPath ? given.split('?')[0] : new URL(given).host;
  return { url: given, isCluster: cluster, description: `redis${cluster ? ' cluster' : ''} ${place}` };
}
