--[[
  Lists the clients that have a record.

  KEYS[1]  zset: when each client's record ends

  Returns the clients.
]]
-- @include server-time
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', serverTime())
return redis.call('ZRANGE', KEYS[1], 0, -1)
