-- Makes permits available whose lease has ended. Returns their number.
local function reclaimPermits(semaphore, held, now)
  local ended = redis.call('ZCOUNT', held, '-inf', now)
  if ended > 0 then
    writeAlthoughFull(held, 'INCRBY', semaphore, ended)
    redis.call('ZREMRANGEBYSCORE', held, '-inf', now)
  end
  return ended
end
