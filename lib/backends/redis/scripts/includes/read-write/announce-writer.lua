-- Announces a waiting writer, so that readers can give way to it.
local function announceWriter(writers, owner, now, waiterTimeout)
  redis.call('ZREMRANGEBYSCORE', writers, '-inf', now)
  redis.call('ZADD', writers, now + waiterTimeout, owner)
  redis.call('PEXPIRE', writers, math.max(redis.call('PTTL', writers), waiterTimeout))
end
