import { LuaError, LuaTable } from './lua-table.js';

/** Redis' error reply to a command. A script gets it as the table that Redis 7 makes of it. */
export function redisError(message: string): LuaError {
  return new LuaError(new LuaTable([], [['err', message]]));
}

export const wrongType = () => redisError('WRONGTYPE Operation against a key holding the wrong kind of value');

/** Something that no script of this library does, and that this server therefore does not know. It is no reply. */
export class NotInProcessError extends Error {
  constructor(what: string) {
    super(`The Redis server in this process does not know ${what}`);
  }
}

/** A reply such as `+OK`. */
export class StatusReply {
  constructor(readonly text: string) {}
}

export const OK = new StatusReply('OK');

/** What a command answers. */
export type Reply = null | number | string | StatusReply | readonly Reply[];
