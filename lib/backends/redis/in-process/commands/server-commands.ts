import { NotInProcessError, OK, redisError, StatusReply } from '../redis-error.js';
import { type Command, optionOf, toInteger, withoutKeys } from './command.js';

export const SERVER_COMMANDS: Readonly<Record<string, Command>> = {
  PING: withoutKeys(0, 0, () => new StatusReply('PONG')),
  SELECT: withoutKeys(1, 1, (_server, database) => {
    if (toInteger(database as string) !== 0) throw redisError('ERR DB index is out of range');
    return OK;
  }),
  TIME: withoutKeys(0, 0, (server) => {
    const micros = server.micros();
    return [String(Math.floor(micros / 1e6)), String(Math.floor(micros % 1e6))];
  }),
  INFO: withoutKeys(
    0,
    1,
    (server) => `redis_version:${server.version}\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n`,
  ),
  COMMAND: withoutKeys(2, 2, (server, part, name) => {
    optionOf('COMMAND', part as string, ['INFO']);
    return [server.knows(name as string) ? [name as string] : null];
  }),
  WAIT: withoutKeys(2, 2, () => 0),
  PUBLISH: withoutKeys(2, 2, (server, channel, text) => server.publish('channel', channel as string, text as string)),
  SPUBLISH: withoutKeys(2, 2, (server, channel, text) => server.publish('sharded', channel as string, text as string)),
  PUBSUB: withoutKeys(1, Infinity, (server, part, ...channels) => {
    const isSharded = optionOf('PUBSUB', part as string, ['NUMSUB', 'SHARDNUMSUB']) === 'SHARDNUMSUB';
    const kind = isSharded ? 'sharded' : 'channel';
    return channels.flatMap((channel) => [channel, server.countSubscribers(kind, channel)]);
  }),
  EVALSHA: withoutKeys(2, Infinity, (server, digest, count, ...rest) => {
    const keys = toInteger(count as string);
    if (keys < 0 || keys > rest.length) throw redisError("ERR Number of keys can't be greater than number of args");
    return server.run(digest as string, rest.slice(0, keys), rest.slice(keys));
  }),
  EVAL: withoutKeys(2, Infinity, () => {
    throw new NotInProcessError('EVAL: it has scripts that were translated by the build');
  }),
};
