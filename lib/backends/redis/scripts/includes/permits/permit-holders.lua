-- Who holds a lock that n may hold, and when their leases end: { owner, time, ... }.
local function permitHolders(lock, now)
  return redis.call('ZRANGE', lock, redis.call('ZCOUNT', lock, '-inf', now), -1, 'WITHSCORES')
end
