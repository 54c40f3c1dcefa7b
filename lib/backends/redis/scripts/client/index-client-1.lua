--[[
  Keeps a client in the list of clients. If the time is 0, removes the client. Also removes clients whose time has
  passed.

  KEYS[1]  zset: when each client's record ends

  ARGV[1]  client
  ARGV[2]  ms for which to keep it
]]
-- @includes
local clients, client, lifetime = KEYS[1], ARGV[1], tonumber(ARGV[2])
local now = serverTime()
redis.call('ZADD', clients, now + lifetime, client)
redis.call('ZREMRANGEBYSCORE', clients, '-inf', now)
if lifetime > 0 then
  redis.call('PEXPIRE', clients, lifetime)
end
