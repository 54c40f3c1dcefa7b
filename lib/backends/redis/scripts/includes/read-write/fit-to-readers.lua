local MOST_TRIES = 10

-- Gives a lock without a writer the lease of the reader that has the longest one. False: nobody reads, and the lock is
-- deleted, unless it has fields of somebody else.
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
  -- Again, where the clock went on between the two: see writeReadLease.
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
