--[[
  Acquires locks that n may hold. For a single lock that nobody held, and without reserved tokens, returns only its token.

  KEYS[1 + i]  lock

  ARGV[5]      permits: an owner may hold the lock if fewer do
  ARGV[5 + i]  owner
]]
-- @template acquire
local option, count = tonumber(ARGV[5]), #ARGV - 5

-- The common case, which has to be fast: see acquire-reentrant.
if count == 1 and reserve == 0 and micros > seen and #time[2] == 6 and redis.call('PTTL', KEYS[2]) == NO_KEY then
  former = redis.call('GETSET', KEYS[1], time[1] .. time[2])
  if former and tonumber(former) < micros then
    redis.call('ZADD', KEYS[2], now + leaseTime, ARGV[6])
    expire(KEYS[2], lease)
    return micros
  end
end

-- @includes
local whyWaits, take = whyPermitWaits, takePermit
