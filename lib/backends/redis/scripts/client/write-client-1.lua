--[[
  Stores the record of a client. If the time is 0, removes the record.

  KEYS[1]  record: hash

  ARGV[1]  ms for which to keep it
  ARGV[2]  first field, ARGV[3] its value, and so on
]]
-- @includes
redis.call('HSET', KEYS[1], 'at', serverTime(), unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
