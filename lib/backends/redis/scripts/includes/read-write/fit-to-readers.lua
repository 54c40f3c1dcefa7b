local MOST_TRIES = 10

-- Sets the lease of a lock without a writer to the longest lease of its readers. Returns false if nobody reads. The
-- lock is then deleted, unless it has fields that this library does not know.
local function fitToReaders(lock)
  local longest, reader = longestReader(lock)
  if not longest then
    if redis.call('HLEN', lock) <= 1 then
      redis.call('DEL', lock)
    end
    return false
  end
  if longest == NO_LEASE then
    return true
  end
  local holds = holdsIn(redis.call('HGET', lock, reader))
  -- Repeated in case the clock advanced in between: see writeReadLease.
  for _ = 1, MOST_TRIES do
    redis.call('PEXPIRE', lock, math.max(1, longest))
    local ttl = redis.call('PTTL', lock)
    longest = longestHold(lock, reader, holds)
    if ttl <= longest + 1 then
      break
    end
  end
  return true
end
