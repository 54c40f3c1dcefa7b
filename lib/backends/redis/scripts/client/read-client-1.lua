--[[
  Reads the record of a client. Changes nothing.

  KEYS[1]  record: hash

  Returns { server time in ms, field, value, ... }; the field `at` is the server time of the writing.
]]
-- @include server-time
return { serverTime(), unpack(redis.call('HGETALL', KEYS[1])) }
