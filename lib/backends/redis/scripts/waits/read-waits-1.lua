--[[
  Reads the waits of an owner. Changes nothing.

  KEYS[1]  hash: a field for each wait

  Returns { id, text, ... }.
]]
return redis.call('HGETALL', KEYS[1])
