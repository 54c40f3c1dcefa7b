--[[
  Lists the clients that have a record. Changes nothing, so a replica can run it.

  KEYS[1]  zset: when each client's record ends

  Returns the clients.
]]
-- @includes
return redis.call('ZRANGE', KEYS[1], '(' .. serverTime(), '+inf', 'BYSCORE')
