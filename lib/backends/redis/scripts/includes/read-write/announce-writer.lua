-- Announces a waiting writer, so that readers can give way to it.
local function announceWriter(writers, owner, now, waiterTimeout)
  redis.call('ZREMRANGEBYSCORE', writers, '-inf', now)
  addUnlessFull(writers, now + waiterTimeout, owner, waiterTimeout)
end
