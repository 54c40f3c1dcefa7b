-- Announces a writer that waits, so that readers may give way to it.
local function announceWriter(writers, owner, now, fairWaitTimeout)
  redis.call('ZREMRANGEBYSCORE', writers, '-inf', now)
  redis.call('ZADD', writers, now + fairWaitTimeout, owner)
  redis.call('PEXPIRE', writers, math.max(redis.call('PTTL', writers), fairWaitTimeout))
end
