--[[
  Renews locks that n may hold. Waiters sleep until the first of the leases ends.

  KEYS[i]  lock
]]
-- @template renew
if not holdsPermit(lock, owner, now) then
  return 0
end
if limit and tonumber(redis.call('ZSCORE', lock, owner)) >= now + lease then
  return 1
end
local former = firstToEnd(lock, now)[1]
-- A server whose memory is full refuses ZADD, but not after another write.
expire(lock, math.max(lease, redis.call('PTTL', lock)))
redis.call('ZADD', lock, now + lease, owner)
fitToPermits(lock, now)
wakeLineIfShorter(lock, publish, prefixed('redisson_lock__channel', lock), '0', former, lease)
