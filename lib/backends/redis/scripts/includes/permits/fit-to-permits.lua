-- Removes the holders whose leases have ended, and makes the lock last as long as the last of the others.
local function fitToPermits(lock, now)
  redis.call('ZREMRANGEBYSCORE', lock, '-inf', now)
  local last = redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')
  if last[1] then
    expire(lock, math.max(1, last[2] - now))
  end
end
