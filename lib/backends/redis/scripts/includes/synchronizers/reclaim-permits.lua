-- Makes permits available whose lease has ended. Returns their number.
local function reclaimPermits(semaphore, held, now)
  local ended = redis.call('ZCOUNT', held, '-inf', now)
  if ended > 0 then
    redis.call('INCRBY', semaphore, ended)
    redis.call('ZREMRANGEBYSCORE', held, '-inf', now)
  end
  return ended
end
